-- The ledger's schema, version 1.
--
-- An item's ``place`` is its batch's number times 2^32 plus its number in the input: one B-tree keeps a batch together
-- in input order. Times are microseconds since the epoch, amounts integer minor units, states the codes of ``states``.

CREATE TABLE meta (
  name TEXT PRIMARY KEY,
  value TEXT NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE states (
  code INTEGER PRIMARY KEY,
  name TEXT NOT NULL UNIQUE
) STRICT;

INSERT INTO states (code, name) VALUES
  (0, 'planned'), (1, 'pending'), (2, 'committed'), (3, 'refused'), (4, 'unknown'), (5, 'skipped');

CREATE TABLE settlements (
  code INTEGER PRIMARY KEY,
  name TEXT NOT NULL UNIQUE
) STRICT;

INSERT INTO settlements (code, name) VALUES
  (0, 'none'), (1, 'pending'), (2, 'succeeded'), (3, 'failed'), (4, 'returned');

-- The head of the trail: one row, rewritten with every transaction that appends events.
CREATE TABLE head (
  one INTEGER PRIMARY KEY CHECK (one = 1),
  size INTEGER NOT NULL,
  last_us INTEGER NOT NULL,
  last_leaf BLOB NOT NULL,
  peaks BLOB NOT NULL
) STRICT;

INSERT INTO head (one, size, last_us, last_leaf, peaks) VALUES (1, 0, 0, x'', x'');

-- Hashes of complete subtrees of the trail: 2^level events each.
CREATE TABLE nodes (
  level INTEGER NOT NULL,
  idx INTEGER NOT NULL,
  hash BLOB NOT NULL,
  PRIMARY KEY (level, idx)
) STRICT, WITHOUT ROWID;

-- The trail. ``place`` is that of the item, of the batch (its number times 2^32), or NULL for the ledger itself.
CREATE TABLE events (
  seq INTEGER PRIMARY KEY,
  place INTEGER,
  body TEXT NOT NULL
) STRICT;

CREATE INDEX events_by_place ON events (place) WHERE place IS NOT NULL;

CREATE TRIGGER events_are_never_changed BEFORE UPDATE ON events
BEGIN SELECT RAISE (ABORT, 'events are append-only'); END;

CREATE TRIGGER events_are_never_removed BEFORE DELETE ON events
BEGIN SELECT RAISE (ABORT, 'events are append-only'); END;

-- INSERT OR REPLACE removes a row without firing the trigger above unless the connection asks for it.
CREATE TRIGGER events_are_never_replaced BEFORE INSERT ON events
WHEN NEW.seq <= (SELECT max(seq) FROM events)
BEGIN SELECT RAISE (ABORT, 'events are append-only'); END;

CREATE TABLE batches (
  number INTEGER PRIMARY KEY,
  id TEXT NOT NULL UNIQUE,
  targets INTEGER NOT NULL,
  spec TEXT NOT NULL,
  seal TEXT NOT NULL,
  items INTEGER NOT NULL,
  created_us INTEGER NOT NULL,
  first_seq INTEGER NOT NULL,
  state TEXT NOT NULL,
  reason TEXT,
  reason_code TEXT,
  hold INTEGER NOT NULL,
  limits TEXT NOT NULL,
  started_us INTEGER,
  ended_us INTEGER,
  sent INTEGER NOT NULL,
  lookups INTEGER NOT NULL,
  rate_limited INTEGER NOT NULL,
  refusals INTEGER NOT NULL,
  consecutive INTEGER NOT NULL,
  cursor INTEGER NOT NULL,
  next_slot_ns INTEGER NOT NULL,
  slow_until_us INTEGER NOT NULL,
  pace_per_ks INTEGER,
  control INTEGER NOT NULL
) STRICT;

CREATE TABLE tallies (
  batch INTEGER NOT NULL,
  state INTEGER NOT NULL,
  currency TEXT NOT NULL,
  items INTEGER NOT NULL,
  minor INTEGER NOT NULL,
  PRIMARY KEY (batch, state, currency)
) STRICT, WITHOUT ROWID;

CREATE TABLE items (
  place INTEGER PRIMARY KEY,
  batch INTEGER NOT NULL AS (place >> 32) VIRTUAL,
  id TEXT NOT NULL,
  target TEXT,
  minor INTEGER,
  currency TEXT,
  fields TEXT,
  state INTEGER NOT NULL,
  settlement INTEGER NOT NULL DEFAULT 0,
  generation INTEGER NOT NULL DEFAULT 0,
  step INTEGER NOT NULL DEFAULT 0,
  attempts INTEGER NOT NULL DEFAULT 0,
  spent INTEGER NOT NULL DEFAULT 0,
  not_before_us INTEGER NOT NULL DEFAULT 0,
  reference TEXT,
  billed_minor INTEGER,
  billed_currency TEXT,
  code TEXT,
  message TEXT,
  carry TEXT,
  first_sent_us INTEGER NOT NULL DEFAULT 0,
  updated_us INTEGER NOT NULL
) STRICT;

CREATE UNIQUE INDEX items_by_id ON items (id, batch);

-- What is still to do, and what a person may want to see; committed items are most of the rest.
CREATE INDEX items_planned ON items (state) WHERE state = 0;
CREATE INDEX items_ended_otherwise ON items (state) WHERE state >= 3;

-- One row for each pending or unknown item, gone when it is decided. flags: ledger/rows.py.
CREATE TABLE intents (
  place INTEGER PRIMARY KEY,
  batch INTEGER NOT NULL AS (place >> 32) VIRTUAL,
  target TEXT,
  fence INTEGER NOT NULL,
  key TEXT,
  digest BLOB NOT NULL,
  first_sent_us INTEGER NOT NULL,
  sent_us INTEGER NOT NULL,
  send_by_us INTEGER NOT NULL,
  deadline_us INTEGER NOT NULL,
  seen_us INTEGER,
  flags INTEGER NOT NULL DEFAULT 0,
  code TEXT,
  message TEXT,
  lookups INTEGER NOT NULL DEFAULT 0,
  lookup_failures INTEGER NOT NULL DEFAULT 0,
  retry_at_us INTEGER NOT NULL DEFAULT 0,
  hold_minor INTEGER,
  hold_currency TEXT,
  method TEXT NOT NULL,
  path TEXT NOT NULL,
  headers TEXT NOT NULL,
  body BLOB NOT NULL
) STRICT;

-- One item in flight for each target, whatever the program above does. NULL where the item is its own target.
CREATE UNIQUE INDEX intents_hold_targets ON intents (batch, target) WHERE target IS NOT NULL;

CREATE TABLE workers (
  fence INTEGER PRIMARY KEY AUTOINCREMENT,
  batch INTEGER NOT NULL,
  actor TEXT NOT NULL,
  joined_us INTEGER NOT NULL,
  lease_until_us INTEGER NOT NULL,
  left_us INTEGER
) STRICT;

CREATE INDEX workers_present ON workers (batch) WHERE left_us IS NULL;

CREATE TABLE outputs (
  place INTEGER PRIMARY KEY,
  output BLOB,
  kept TEXT
) STRICT;

CREATE TABLE findings (
  id INTEGER PRIMARY KEY,
  batch INTEGER NOT NULL,
  item TEXT,
  kind TEXT NOT NULL,
  data TEXT NOT NULL,
  state TEXT NOT NULL DEFAULT 'open',
  opened_us INTEGER NOT NULL
) STRICT;

CREATE INDEX findings_of_batch ON findings (batch);
