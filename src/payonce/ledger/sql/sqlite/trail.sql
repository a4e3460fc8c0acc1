-- Statements of the trail's own reading side. Places, states and settlements as in migrations/0001_ledger.sql.

-- meta --
-- A fact about the ledger itself.
SELECT value FROM meta WHERE name = ?;

-- head --
-- The head of the trail.
SELECT size, last_us, last_leaf, peaks FROM head;

-- extent --
-- The last event there is.
SELECT coalesce(max(seq), 0) FROM events;

-- bodies --
-- The bytes of events ?1 to ?2, both included.
SELECT seq, CAST(body AS BLOB) FROM events WHERE seq BETWEEN ?1 AND ?2 ORDER BY seq;

-- filed --
-- The same with the place they are filed under, and the mark.
SELECT seq, place, CAST(body AS BLOB), mark FROM events WHERE seq BETWEEN ?1 AND ?2 ORDER BY seq;

-- chunk --
-- Place and bytes of events ?1 to ?2, both included.
SELECT place, CAST(body AS BLOB) FROM events WHERE seq BETWEEN ?1 AND ?2 ORDER BY seq;

-- chunk_of --
-- Of events ?1 to ?2, those under a place from ?3 to ?4; what is filed under none counts as the lowest.
SELECT seq, place, CAST(body AS BLOB) FROM events
WHERE seq BETWEEN ?1 AND ?2 AND coalesce(+place, -9223372036854775808) BETWEEN ?3 AND ?4 ORDER BY seq;

-- of_item --
-- Events filed under an item, or under a batch itself.
SELECT seq, CAST(body AS BLOB) FROM events WHERE place = ? ORDER BY seq;

-- nodes --
-- Kept hashes of one level, ?2 to ?3, both included.
SELECT idx, hash FROM nodes WHERE level = ?1 AND idx BETWEEN ?2 AND ?3 ORDER BY idx;

-- batches --
-- All batches in the order they were sealed.
SELECT number, id, targets, spec, seal, items, created_us, first_seq, state, reason, reason_code, hold, limits,
  started_us, ended_us, sent, lookups, rate_limited, refusals, consecutive, cursor, next_slot_ns, slow_until_us,
  pace_per_ks, control
FROM batches ORDER BY number;

-- number_of --
-- An item's number by its id.
SELECT n FROM item_ids AS x JOIN items AS i ON i.place = x.batch << 32 | x.n
WHERE x.id = ?1 AND x.batch = ?2 AND i.id = ?1;

-- ids --
-- How many ids a batch has in the table of ids, and how many of them lead to the item of that id.
SELECT count(*), count(i.place) FROM item_ids AS x LEFT JOIN items AS i ON i.place = x.batch << 32 | x.n AND i.id = x.id
WHERE x.batch = ?;

-- tallies --
-- A batch's tallies.
SELECT state, currency, items, minor FROM tallies WHERE batch = ?;

-- facts --
-- What the events of a batch's items have to explain: ?1 is the batch's place.
SELECT place - ?1, id, minor, currency, state, settlement, generation, step, attempts, reference, billed_minor,
  billed_currency, code, message
FROM items WHERE place > ?1 AND place < ?1 + 4294967296 ORDER BY place;

-- stored --
-- What was sealed of the items ?2 to ?3 of the batch whose place is ?1, and what their events have to explain.
SELECT place - ?1, id, coalesce(target, id), minor, currency, coalesce(fields, '{}'), state, settlement, generation,
  step, attempts, reference, billed_minor, billed_currency, code, message
FROM items WHERE place BETWEEN ?1 + ?2 AND ?1 + ?3 ORDER BY place;

-- alike --
-- Of the first item from place ?1 to ?2: the place, and what is mostly the same for all items around it.
SELECT place, state, settlement, generation, step, attempts, currency, billed_currency, code, message
FROM items WHERE place BETWEEN ?1 AND ?2 ORDER BY place LIMIT 1;

-- texts --
-- Of the items from place ?1 to ?2: how many there are, the last place, how many are as ?3 to ?11 say, and the columns that
-- differ from item to item, each as a JSON array.
SELECT count(*), max(place), count(*) FILTER (WHERE state IS ?3 AND settlement IS ?4 AND generation IS ?5
    AND step IS ?6 AND attempts IS ?7 AND currency IS ?8 AND billed_currency IS ?9 AND code IS ?10 AND message IS ?11),
  json_group_array(id), json_group_array(coalesce(target, id)), json_group_array(minor),
  json_group_array(coalesce(fields, '{}')), json_group_array(reference), json_group_array(billed_minor)
FROM items NOT INDEXED WHERE place BETWEEN ?1 AND ?2;

-- others --
-- Of the items from place ?1 to ?2: the place and the columns that are mostly the same, each as a JSON array.
SELECT json_group_array(place), json_group_array(state), json_group_array(settlement), json_group_array(generation),
  json_group_array(step), json_group_array(attempts), json_group_array(currency), json_group_array(billed_currency),
  json_group_array(code), json_group_array(message)
FROM items NOT INDEXED WHERE place BETWEEN ?1 AND ?2;

-- sealed --
-- What was sealed of a batch's items: ?1 is the batch's place.
SELECT id, coalesce(target, id), minor, currency, coalesce(fields, '{}')
FROM items WHERE place > ?1 AND place < ?1 + 4294967296 ORDER BY place;

-- holds --
-- What the open intents of a batch hold: ?1 is the batch's place.
SELECT place - ?1, hold_minor, hold_currency FROM intents WHERE place > ?1 AND place < ?1 + 4294967296;

-- outputs --
-- What the calls of a batch's items ?2 to ?3 returned, where it is there: ?1 is the batch's place.
SELECT place - ?1, output, kept FROM outputs
WHERE place BETWEEN ?1 + ?2 AND ?1 + ?3 AND (output IS NOT NULL OR kept IS NOT NULL) ORDER BY place;

-- findings --
-- A batch's discrepancies. They are opened and stay: one that says it is closed is none that the ledger wrote.
SELECT item, kind FROM findings WHERE batch = ? AND state = 'open';

-- payloads --
-- Kept payloads of the whole ledger, by event.
SELECT seq, kind, digest, body, erased_by FROM payloads ORDER BY seq;

-- payloads_at --
-- Kept payloads of one place.
SELECT seq, kind, digest, body, erased_by FROM payloads WHERE place = ? ORDER BY seq;
