-- What batches have to know of each other. Places and states as in migrations/0001_ledger.sql.

-- extents --
-- How many items each batch has.
SELECT number, items FROM batches;

-- acted_targets --
-- The targets that a batch has acted on or will: $1 is the batch's place.
SELECT coalesce(target, id) FROM items
WHERE place > $1 AND place < $1 + 4294967296 AND state IN (0, 1, 2, 4) ORDER BY place;

-- acting_on --
-- The items of a batch that act on some targets: $1 is the batch's place, $2 a list of targets.
SELECT b.id, i.id, coalesce(i.target, i.id), i.state, i.minor, i.currency
FROM items AS i JOIN batches AS b ON b.number = $1::bigint >> 32
WHERE i.place > $1 AND i.place < $1 + 4294967296 AND i.state IN (0, 1, 2, 4) AND coalesce(i.target, i.id) = ANY ($2)
ORDER BY i.place;
