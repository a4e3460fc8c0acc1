-- The ledger's schema on PostgreSQL, version 1. All names are looked up in the ledger's own schema.
--
-- An item's ``place`` is its batch's number times 2^32 plus its number in the input: one index keeps a batch together
-- in input order. Times are microseconds since the epoch, amounts integer minor units. States of items: 0 planned,
-- 1 pending, 2 committed, 3 refused, 4 unknown, 5 skipped; settlements: 0 none, 1 pending, 2 succeeded, 3 failed, 4 returned.
-- Numbers of batches, workers and findings are given out by the program under the lock on ``head``, so no role needs a
-- sequence, and none has gaps. JSON is text: its exact bytes count.

CREATE TABLE meta (
  name text PRIMARY KEY,
  value text NOT NULL
);

-- The head of the trail: one row. Whoever writes to the ledger locks it first, so writers come one after the other, and
-- counts ``turn`` up, so that each of them can tell whether another one wrote since its last transaction.
CREATE TABLE head (
  one integer PRIMARY KEY CHECK (one = 1),
  size bigint NOT NULL,
  last_us bigint NOT NULL,
  last_leaf bytea NOT NULL,
  peaks bytea NOT NULL,
  turn bigint NOT NULL
) WITH (fillfactor = 20, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 2000);

INSERT INTO head (one, size, last_us, last_leaf, peaks, turn) VALUES (1, 0, 0, '', '', 0);

-- Hashes of complete subtrees of the trail: 2^level events each.
CREATE TABLE nodes (
  level integer NOT NULL,
  idx bigint NOT NULL,
  hash bytea NOT NULL,
  PRIMARY KEY (level, idx)
);

-- The trail. ``place`` is that of the item, of the batch (its number times 2^32), or NULL for the ledger itself.
-- ``mark`` is the first eight bytes of the event's leaf hash as a signed number.
CREATE TABLE events (
  seq bigint PRIMARY KEY,
  place bigint,
  body text NOT NULL,
  mark bigint NOT NULL
);

CREATE INDEX events_by_place ON events (place, seq) WHERE place IS NOT NULL;

CREATE FUNCTION refuse_change() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  RAISE EXCEPTION 'rows of % are append-only', TG_TABLE_NAME USING ERRCODE = 'integrity_constraint_violation';
END
$$;

-- For each statement, whether it would touch a row or not; ALWAYS: in replica mode too. They hold for the owner as well.
CREATE TRIGGER events_are_append_only BEFORE UPDATE OR DELETE OR TRUNCATE ON events
  FOR EACH STATEMENT EXECUTE FUNCTION refuse_change();
ALTER TABLE events ENABLE ALWAYS TRIGGER events_are_append_only;

CREATE TRIGGER nodes_are_append_only BEFORE UPDATE OR DELETE OR TRUNCATE ON nodes
  FOR EACH STATEMENT EXECUTE FUNCTION refuse_change();
ALTER TABLE nodes ENABLE ALWAYS TRIGGER nodes_are_append_only;

-- Payloads of calls, kept by policy. Their digests are in the events, so a payload can be erased later without breaking
-- the trail: its text goes, the row stays and names the event that erased it.
CREATE TABLE payloads (
  seq bigint NOT NULL,
  kind text NOT NULL,
  place bigint NOT NULL,
  digest bytea NOT NULL,
  body bytea,
  erased_by bigint,
  PRIMARY KEY (seq, kind)
);

CREATE INDEX payloads_by_place ON payloads (place);

CREATE FUNCTION refuse_all_but_erasing() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF NEW.body IS NOT NULL OR NEW.erased_by IS NULL OR NEW.digest <> OLD.digest OR NEW.seq <> OLD.seq
    OR NEW.kind <> OLD.kind OR NEW.place <> OLD.place THEN
    RAISE EXCEPTION 'a payload is only ever erased' USING ERRCODE = 'integrity_constraint_violation';
  END IF;
  RETURN NEW;
END
$$;

CREATE TRIGGER payloads_are_only_erased BEFORE UPDATE ON payloads
  FOR EACH ROW EXECUTE FUNCTION refuse_all_but_erasing();
ALTER TABLE payloads ENABLE ALWAYS TRIGGER payloads_are_only_erased;

CREATE TRIGGER payloads_are_never_removed BEFORE DELETE OR TRUNCATE ON payloads
  FOR EACH STATEMENT EXECUTE FUNCTION refuse_change();
ALTER TABLE payloads ENABLE ALWAYS TRIGGER payloads_are_never_removed;

CREATE TABLE batches (
  number bigint PRIMARY KEY,
  id text COLLATE "C" NOT NULL UNIQUE,
  targets smallint NOT NULL,
  spec text NOT NULL,
  seal text NOT NULL,
  items bigint NOT NULL,
  created_us bigint NOT NULL,
  first_seq bigint NOT NULL,
  state text NOT NULL,
  reason text,
  reason_code text,
  hold smallint NOT NULL,
  limits text NOT NULL,
  started_us bigint,
  ended_us bigint,
  sent bigint NOT NULL,
  lookups bigint NOT NULL,
  rate_limited bigint NOT NULL,
  refusals bigint NOT NULL,
  consecutive bigint NOT NULL,
  cursor bigint NOT NULL,
  next_slot_ns bigint NOT NULL,
  slow_until_us bigint NOT NULL,
  pace_per_ks bigint,
  control bigint NOT NULL
) WITH (fillfactor = 50, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 2000);

CREATE TABLE tallies (
  batch bigint NOT NULL,
  state smallint NOT NULL,
  currency text COLLATE "C" NOT NULL,
  items bigint NOT NULL,
  minor bigint NOT NULL,
  PRIMARY KEY (batch, state, currency)
) WITH (fillfactor = 50, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 2000);

CREATE TABLE items (
  place bigint PRIMARY KEY,
  id text COLLATE "C" NOT NULL,
  target text COLLATE "C",
  minor bigint,
  currency text,
  fields text,
  state smallint NOT NULL,
  settlement smallint NOT NULL DEFAULT 0,
  generation integer NOT NULL DEFAULT 0,
  step integer NOT NULL DEFAULT 0,
  attempts integer NOT NULL DEFAULT 0,
  spent integer NOT NULL DEFAULT 0,
  not_before_us bigint NOT NULL DEFAULT 0,
  reference text COLLATE "C",
  billed_minor bigint,
  billed_currency text,
  code text,
  message text,
  carry text,
  first_sent_us bigint NOT NULL DEFAULT 0,
  updated_us bigint NOT NULL
);

CREATE UNIQUE INDEX items_by_id ON items ((place >> 32), id);

-- What is still to do, and what a person may want to see; committed items are most of the rest.
CREATE INDEX items_planned ON items (place) WHERE state = 0;
CREATE INDEX items_ended_otherwise ON items (state, place) WHERE state >= 3;
-- Which references are taken, for look-ups; a hash: only ever asked for equality.
CREATE INDEX items_by_reference ON items USING hash (reference) WHERE reference IS NOT NULL;

-- One row for each pending or unknown item, gone when it is decided. flags: ledger/rows.py.
CREATE TABLE intents (
  place bigint PRIMARY KEY,
  target text COLLATE "C",
  fence bigint NOT NULL,
  key text,
  digest bytea NOT NULL,
  first_sent_us bigint NOT NULL,
  sent_us bigint NOT NULL,
  send_by_us bigint NOT NULL,
  deadline_us bigint NOT NULL,
  seen_us bigint,
  flags integer NOT NULL DEFAULT 0,
  code text,
  message text,
  lookups integer NOT NULL DEFAULT 0,
  lookup_failures integer NOT NULL DEFAULT 0,
  retry_at_us bigint NOT NULL DEFAULT 0,
  hold_minor bigint,
  hold_currency text,
  method text NOT NULL,
  path text NOT NULL,
  headers text NOT NULL,
  body bytea NOT NULL
) WITH (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 20000);

-- One item in flight for each target, whatever the program above does. NULL where the item is its own target.
CREATE UNIQUE INDEX intents_hold_targets ON intents ((place >> 32), target) WHERE target IS NOT NULL;

CREATE TABLE workers (
  fence bigint PRIMARY KEY,
  batch bigint NOT NULL,
  actor text NOT NULL,
  joined_us bigint NOT NULL,
  lease_until_us bigint NOT NULL,
  left_us bigint
) WITH (fillfactor = 50);

CREATE INDEX workers_present ON workers (batch) WHERE left_us IS NULL;

CREATE TABLE outputs (
  place bigint PRIMARY KEY,
  output bytea,
  kept text
);

CREATE TABLE findings (
  id bigint PRIMARY KEY,
  batch bigint NOT NULL,
  item text,
  kind text NOT NULL,
  data text NOT NULL,
  state text NOT NULL DEFAULT 'open',
  opened_us bigint NOT NULL
);

CREATE INDEX findings_of_batch ON findings (batch);

-- Append-only by right as well: the owner too has to give itself the right back before it even meets the triggers.
REVOKE UPDATE, DELETE, TRUNCATE, REFERENCES, TRIGGER ON events, nodes FROM PUBLIC, CURRENT_USER;
REVOKE DELETE, TRUNCATE, REFERENCES, TRIGGER ON payloads FROM PUBLIC, CURRENT_USER;
REVOKE DELETE, TRUNCATE ON head, batches, items, workers, findings FROM PUBLIC, CURRENT_USER;
