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

-- kept_nodes --
-- How many hashes are kept.
SELECT count(*) FROM nodes;

-- batches --
-- All batches in the order they were sealed.
SELECT number, id, targets, spec, seal, items, created_us, first_seq, state, reason, reason_code, hold, limits,
  started_us, ended_us, sent, lookups, rate_limited, refusals, consecutive, cursor, next_slot_ns, slow_until_us,
  pace_per_ks, control
FROM batches ORDER BY number;

-- last_batch --
-- The number of the last batch.
SELECT coalesce(max(number), 0) FROM batches;

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

-- stored --
-- The items ?2 to ?3 of the batch whose place is ?1, as they are stored.
SELECT place - ?1, id, coalesce(target, id), minor, currency, coalesce(fields, '{}'), state, settlement, generation,
  step, attempts, spent, not_before_us, reference, billed_minor, billed_currency, code, message, coalesce(carry, '{}'),
  first_sent_us, updated_us
FROM items WHERE place BETWEEN ?1 + ?2 AND ?1 + ?3 ORDER BY place;

-- alike --
-- Of the first item from place ?1 to ?2: the place, and what is mostly the same for all items around it.
SELECT place, state, settlement, generation, step, attempts, spent, not_before_us, first_sent_us, currency,
  billed_currency, code, message, carry
FROM items WHERE place BETWEEN ?1 AND ?2 ORDER BY place LIMIT 1;

-- texts --
-- Of the items from place ?1 to ?2: how many there are, the last place, how many are as ?3 to ?15 say, and the columns that
-- differ from item to item, each as a JSON array.
SELECT count(*), max(place), count(*) FILTER (WHERE state IS ?3 AND settlement IS ?4 AND generation IS ?5
    AND step IS ?6 AND attempts IS ?7 AND spent IS ?8 AND not_before_us IS ?9 AND first_sent_us IS ?10
    AND currency IS ?11 AND billed_currency IS ?12 AND code IS ?13 AND message IS ?14 AND carry IS ?15),
  json_group_array(id), json_group_array(coalesce(target, id)), json_group_array(minor),
  json_group_array(coalesce(fields, '{}')), json_group_array(reference), json_group_array(billed_minor),
  json_group_array(updated_us)
FROM items NOT INDEXED WHERE place BETWEEN ?1 AND ?2;

-- others --
-- Of the items from place ?1 to ?2: the place and the columns that are mostly the same, each as a JSON array.
SELECT json_group_array(place), json_group_array(state), json_group_array(settlement), json_group_array(generation),
  json_group_array(step), json_group_array(attempts), json_group_array(spent), json_group_array(not_before_us),
  json_group_array(first_sent_us), json_group_array(currency), json_group_array(billed_currency),
  json_group_array(code), json_group_array(message), json_group_array(carry)
FROM items NOT INDEXED WHERE place BETWEEN ?1 AND ?2;

-- sealed --
-- What was sealed of a batch's items: ?1 is the batch's place.
SELECT id, coalesce(target, id), minor, currency, coalesce(fields, '{}')
FROM items WHERE place > ?1 AND place < ?1 + 4294967296 ORDER BY place;

-- holds --
-- What the open intents of a batch hold: ?1 is the batch's place.
SELECT place - ?1, hold_minor, hold_currency FROM intents WHERE place > ?1 AND place < ?1 + 4294967296;

-- opens --
-- The open intents of a batch with everything, and their items' targets: ?1 is the batch's place.
SELECT o.place - ?1, o.target, o.fence, o.key, o.digest, o.first_sent_us, o.sent_us, o.send_by_us, o.deadline_us,
  o.seen_us, o.flags, o.code, o.message, o.lookups, o.lookup_failures, o.retry_at_us, o.hold_minor, o.hold_currency,
  o.method, o.path, o.headers, o.body, coalesce(i.target, i.id, '')
FROM intents AS o LEFT JOIN items AS i ON i.place = o.place
WHERE o.place > ?1 AND o.place < ?1 + 4294967296 ORDER BY o.place;

-- workers --
-- All workers there ever were.
SELECT fence, batch, actor, joined_us, lease_until_us, left_us FROM workers ORDER BY fence;

-- strangers --
-- Tables in which a row belongs to none of the batches: ?1 is the number of the last one.
SELECT 'items' WHERE EXISTS (SELECT 1 FROM items WHERE place <= 1 << 32)
  OR EXISTS (SELECT 1 FROM items WHERE place >= (?1 + 1) << 32)
UNION ALL SELECT 'intents' WHERE EXISTS (SELECT 1 FROM intents WHERE place <= 1 << 32)
  OR EXISTS (SELECT 1 FROM intents WHERE place >= (?1 + 1) << 32)
UNION ALL SELECT 'outputs' WHERE EXISTS (SELECT 1 FROM outputs WHERE place <= 1 << 32)
  OR EXISTS (SELECT 1 FROM outputs WHERE place >= (?1 + 1) << 32)
UNION ALL SELECT 'tallies' WHERE EXISTS (SELECT 1 FROM tallies WHERE batch NOT BETWEEN 1 AND ?1)
UNION ALL SELECT 'workers' WHERE EXISTS (SELECT 1 FROM workers WHERE batch NOT BETWEEN 1 AND ?1)
UNION ALL SELECT 'findings' WHERE EXISTS (SELECT 1 FROM findings WHERE batch NOT BETWEEN 1 AND ?1);

-- stranger_ids --
-- Whether an id is kept that belongs to none of the batches: ?1 is the number of the last one.
SELECT 'item_ids' WHERE EXISTS (SELECT 1 FROM item_ids WHERE batch < 1) OR EXISTS (SELECT 1 FROM item_ids WHERE batch > ?1);

-- outputs --
-- What the calls of a batch's items ?2 to ?3 returned, where it is there: ?1 is the batch's place.
SELECT place - ?1, output, kept FROM outputs
WHERE place BETWEEN ?1 + ?2 AND ?1 + ?3 AND (output IS NOT NULL OR kept IS NOT NULL) ORDER BY place;

-- findings --
-- A batch's discrepancies.
SELECT id, item, kind, data, state, opened_us FROM findings WHERE batch = ? ORDER BY id;

-- payloads --
-- Kept payloads of the whole ledger, by event.
SELECT seq, kind, place, digest, body, erased_by FROM payloads ORDER BY seq;

-- payloads_at --
-- Kept payloads of one place.
SELECT seq, kind, place, digest, body, erased_by FROM payloads WHERE place = ? ORDER BY seq;
