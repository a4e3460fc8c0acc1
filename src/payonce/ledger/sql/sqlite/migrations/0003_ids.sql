-- Version 3: the ids of a batch's items in a table of their own, which a batch of millions fills in their order.

-- As an index of ``items`` it took a page somewhere in its middle for nearly every item with a random id.
CREATE TABLE item_ids (
  batch INTEGER NOT NULL,
  id TEXT NOT NULL,
  n INTEGER NOT NULL,
  PRIMARY KEY (batch, id)
) STRICT, WITHOUT ROWID;

INSERT INTO item_ids (batch, id, n) SELECT place >> 32, id, place & 4294967295 FROM items ORDER BY place >> 32, id;

DROP INDEX items_by_id;
