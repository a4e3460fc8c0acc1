-- Statements of a write transaction. Each block has a name and says what it is for.

-- head --
-- The head of the trail as this transaction begins.
SELECT size, last_us, last_leaf, peaks FROM head;

-- save_head --
-- The head after this transaction's events.
UPDATE head SET size = ?, last_us = ?, last_leaf = ?, peaks = ?;

-- add_event --
-- One event of the trail.
INSERT INTO events (seq, place, body, mark) VALUES (?, ?, ?, ?);

-- add_node --
-- The hash of a subtree that became complete.
INSERT INTO nodes (level, idx, hash) VALUES (?, ?, ?);

-- batch --
-- A batch by its id.
SELECT number, id, targets, spec, seal, items, created_us, first_seq, state, reason, reason_code, hold, limits,
  started_us, ended_us, sent, lookups, rate_limited, refusals, consecutive, cursor, next_slot_ns, slow_until_us,
  pace_per_ks, control
FROM batches WHERE id = ?;

-- add_batch --
-- A new batch; its number is the rowid.
INSERT INTO batches (id, targets, spec, seal, items, created_us, first_seq, state, reason, reason_code, hold, limits,
  started_us, ended_us, sent, lookups, rate_limited, refusals, consecutive, cursor, next_slot_ns, slow_until_us,
  pace_per_ks, control)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?);

-- save_batch --
-- What changes of a batch.
UPDATE batches SET spec = ?, seal = ?, items = ?, state = ?, reason = ?, reason_code = ?, hold = ?, limits = ?,
  started_us = ?, ended_us = ?, sent = ?, lookups = ?, rate_limited = ?, refusals = ?, consecutive = ?, cursor = ?, next_slot_ns = ?,
  slow_until_us = ?, pace_per_ks = ?, control = ?
WHERE number = ?;

-- tallies --
-- A batch's tallies.
SELECT state, currency, items, minor FROM tallies WHERE batch = ?;

-- save_tally --
-- One tally, as an absolute value.
INSERT INTO tallies (batch, state, currency, items, minor) VALUES (?, ?, ?, ?, ?)
ON CONFLICT DO UPDATE SET items = excluded.items, minor = excluded.minor;

-- add_items --
-- A new item, planned. For several, its group of values is repeated: they share ?1, the time. Columns that none of them
-- has are left out.
INSERT INTO items (updated_us, state, place, id, target, minor, currency, fields) VALUES (?1, 0, ?, ?, ?, ?, ?, ?);

-- add_ids --
-- The ids of new items, which are the places from ?1 to ?2: in their order, so that it is written page after page.
INSERT INTO item_ids (batch, id, n)
SELECT place >> 32, id, place & 4294967295 FROM items WHERE place BETWEEN ?1 AND ?2 ORDER BY id;

-- add_id --
-- The id of one new item, whose place is ?1 and ?2.
INSERT INTO item_ids (batch, id, n) SELECT place >> 32, id, place & 4294967295 FROM items WHERE place = ?1 AND place = ?2;

-- repeated_id --
-- An id that the items from ?1 to ?2 have twice, or one that an earlier item of their batch has.
SELECT id FROM (
  SELECT id FROM items WHERE place BETWEEN ?1 AND ?2 GROUP BY id HAVING count(*) > 1
  UNION ALL
  SELECT i.id FROM items AS i JOIN item_ids AS x ON x.batch = i.place >> 32 AND x.id = i.id
  WHERE i.place BETWEEN ?1 AND ?2
) LIMIT 1;

-- rows --
-- Some items of a batch by number: ?1 is the batch's place, ?2 a JSON list of numbers.
SELECT j.value, id, coalesce(target, id), minor, currency, coalesce(fields, '{}'), state, settlement, generation, step,
  attempts, spent, not_before_us, reference, billed_minor, billed_currency, code, message, coalesce(carry, '{}'),
  first_sent_us, updated_us
FROM (SELECT value FROM json_each(?2)) AS j CROSS JOIN items ON place = ?1 + j.value;

-- planned_after --
-- The next planned items in input order: ?1 is the batch's place, ?2 the place to start behind.
SELECT place - ?1, id, coalesce(target, id), minor, currency, coalesce(fields, '{}'), state, settlement, generation,
  step, attempts, spent, not_before_us, reference, billed_minor, billed_currency, code, message, coalesce(carry, '{}'),
  first_sent_us, updated_us
FROM items INDEXED BY items_planned
WHERE state = 0 AND place > ?2 AND place < ?1 + 4294967296
ORDER BY place LIMIT ?3;

-- number_of --
-- An item's number by its id, which is the item's own as well.
SELECT n FROM item_ids AS x JOIN items AS i ON i.place = x.batch << 32 | x.n
WHERE x.id = ?1 AND x.batch = ?2 AND i.id = ?1;

-- begin_items --
-- Items become pending by a worker's intents: ?1 is the batch's place, ?2 a JSON list of numbers, ?3 the time.
UPDATE items SET state = 1, attempts = attempts + 1, code = NULL, message = NULL, updated_us = ?3
WHERE place IN (SELECT ?1 + value FROM json_each(?2));

-- begin_item --
-- The same for one item, by its place: half the work.
UPDATE items SET state = 1, attempts = attempts + 1, code = NULL, message = NULL, updated_us = ?2 WHERE place = ?1;

-- save_item --
-- What changes of an item.
UPDATE items SET state = ?, settlement = ?, generation = ?, step = ?, attempts = ?, spent = ?, not_before_us = ?,
  reference = nullif(?, ''), billed_minor = ?, billed_currency = nullif(?, ''), code = nullif(?, ''),
  message = nullif(?, ''), carry = nullif(?, ''), first_sent_us = ?, updated_us = ?
WHERE place = ?;

-- sealed --
-- What was sealed of the items from place ?1 to ?2.
SELECT id, coalesce(target, id), minor, currency, coalesce(fields, '{}')
FROM items WHERE place BETWEEN ?1 AND ?2 ORDER BY place;

-- commit_items --
-- Items that were executed over the amount asked: ?1 is the batch's place, ?2 a JSON object of references by number, ?3 the
-- settlement, ?4 the time.
UPDATE items SET state = 2, settlement = ?3, reference = j.value, billed_minor = minor, billed_currency = currency,
  code = NULL, message = NULL, updated_us = ?4
FROM json_each(?2) AS j WHERE place = ?1 + j.key;

-- opens --
-- Open intents of some items, without their requests: ?1 is the batch's place, ?2 a JSON list of numbers.
SELECT j.value, target, fence, key, digest, first_sent_us, sent_us, send_by_us, deadline_us, seen_us, flags, code,
  message, lookups, lookup_failures, retry_at_us, hold_minor, hold_currency
FROM (SELECT value FROM json_each(?2)) AS j CROSS JOIN intents ON place = ?1 + j.value;

-- holders --
-- Which of some targets are held, and by which item: ?2 is a JSON list of targets.
SELECT target, place & 4294967295 FROM (SELECT value FROM json_each(?2)) AS j CROSS JOIN intents ON batch = ?1 AND target = j.value;

-- orphans --
-- Pending items whose worker is none of the living: ?2 is a JSON list of fences.
SELECT place & 4294967295 FROM intents
WHERE place > ?1 << 32 AND place < (?1 + 1) << 32 AND flags < 32 AND fence NOT IN (SELECT value FROM json_each(?2))
ORDER BY place LIMIT ?3;

-- open_intent --
-- A new open intent.
INSERT INTO intents (place, target, fence, key, digest, first_sent_us, sent_us, send_by_us, deadline_us, hold_minor,
  hold_currency, method, path, headers, body)
VALUES (?, nullif(?, ''), ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?);

-- change_intent --
-- What changes of an open intent under one key.
UPDATE intents SET fence = ?, first_sent_us = ?, sent_us = ?, send_by_us = ?, deadline_us = ?, seen_us = ?, flags = ?,
  code = ?, message = ?, lookups = ?, lookup_failures = ?, retry_at_us = ?, hold_minor = ?, hold_currency = ?
WHERE place = ?;

-- change_request --
-- The next step's key and request.
UPDATE intents SET key = ?, digest = ?, method = ?, path = ?, headers = ?, body = ? WHERE place = ?;

-- close_intents --
-- Open intents that are decided: ?1 is the batch's place, ?2 a JSON list of numbers.
DELETE FROM intents WHERE place IN (SELECT ?1 + value FROM json_each(?2));

-- close_intent --
-- One of them, by its place.
DELETE FROM intents WHERE place = ?;

-- add_output --
-- What a committed call returned.
INSERT INTO outputs (place, output, kept) VALUES (?, ?, ?)
ON CONFLICT DO UPDATE SET output = excluded.output, kept = excluded.kept;

-- add_payload --
-- What is kept of a payload.
INSERT INTO payloads (seq, kind, place, digest, body) VALUES (?, ?, ?, ?, ?);

-- erase_fields --
-- An item's fields without what was erased.
UPDATE items SET fields = ? WHERE place = ?;

-- erase_payloads --
-- The payloads of an item: their digests stay.
UPDATE payloads SET body = NULL, erased_by = ? WHERE place = ? AND body IS NOT NULL;

-- erase_output --
-- What an item's call returned.
UPDATE outputs SET output = NULL, kept = NULL WHERE place = ?;

-- add_finding --
-- A discrepancy.
INSERT INTO findings (batch, item, kind, data, opened_us) VALUES (?, ?, ?, ?, ?);

-- add_worker --
-- A worker; its fence is the rowid, never used twice.
INSERT INTO workers (batch, actor, joined_us, lease_until_us, left_us) VALUES (?, ?, ?, ?, ?);

-- worker --
-- A worker by its fence.
SELECT fence, batch, actor, joined_us, lease_until_us, left_us FROM workers WHERE fence = ?;

-- workers --
-- A batch's workers that have not left.
SELECT fence, batch, actor, joined_us, lease_until_us, left_us FROM workers WHERE batch = ? AND left_us IS NULL;

-- save_worker --
-- A worker's lease and leaving.
UPDATE workers SET lease_until_us = ?, left_us = ? WHERE fence = ?;

-- index_references --
-- Made when a look-up asks for the first time which references are taken: most ledgers never need it, and it would
-- cost every commit a page somewhere in the middle of a large index.
CREATE INDEX IF NOT EXISTS items_by_reference ON items (reference) WHERE reference IS NOT NULL;

-- claimed --
-- Those of some references that a committed item carries: ?1 is a JSON list.
SELECT DISTINCT reference FROM (SELECT value FROM json_each(?1)) AS j CROSS JOIN items INDEXED BY items_by_reference
  ON reference = j.value AND reference IS NOT NULL AND state = 2;

-- claimed_on --
-- The same, of items on one target: ?2. With what their batches were sealed as, since that says at which provider.
SELECT DISTINCT i.reference, b.spec FROM (SELECT value FROM json_each(?1)) AS j
  CROSS JOIN items AS i INDEXED BY items_by_reference
  ON i.reference = j.value AND i.reference IS NOT NULL AND i.state = 2 AND coalesce(i.target, i.id) = ?2
  CROSS JOIN batches AS b ON b.number = i.place >> 32;

-- meta --
-- Facts about the ledger itself.
SELECT name, value FROM meta;

-- save_meta --
-- A fact about the ledger itself.
INSERT INTO meta (name, value) VALUES (?, ?) ON CONFLICT DO UPDATE SET value = excluded.value;
