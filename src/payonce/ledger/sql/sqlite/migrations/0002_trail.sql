-- Version 2: what lets a check of the trail name the very event that was changed, and payloads that can be erased.

-- The first eight bytes of the event's leaf hash as a signed number. Not a protection (whoever changes an event can
-- change this too): it tells which of the 256 events under a kept hash is the one that does not fit.
ALTER TABLE events ADD COLUMN mark INTEGER;

-- Payloads of calls, kept by policy ([trail] payloads). Their digests are in the events, so a payload can be erased
-- later without breaking the trail: its text goes, the row stays and names the event that erased it.
CREATE TABLE payloads (
  seq INTEGER NOT NULL,
  kind TEXT NOT NULL,
  place INTEGER NOT NULL,
  digest BLOB NOT NULL,
  body BLOB,
  erased_by INTEGER,
  PRIMARY KEY (seq, kind)
) STRICT, WITHOUT ROWID;

CREATE INDEX payloads_by_place ON payloads (place);

CREATE TRIGGER payloads_are_only_erased BEFORE UPDATE ON payloads
WHEN NEW.body IS NOT NULL OR NEW.erased_by IS NULL OR NEW.digest <> OLD.digest OR NEW.seq <> OLD.seq
  OR NEW.kind <> OLD.kind OR NEW.place <> OLD.place
BEGIN SELECT RAISE (ABORT, 'a payload is only ever erased'); END;

CREATE TRIGGER payloads_are_never_removed BEFORE DELETE ON payloads
BEGIN SELECT RAISE (ABORT, 'a payload is only ever erased'); END;
