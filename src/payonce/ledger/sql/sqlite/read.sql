-- Statements of the reading side: what is durable, beside a running write.

-- meta --
-- Facts about the ledger itself.
SELECT name, value FROM meta;

-- head --
-- The head of the trail.
SELECT size, last_us, last_leaf, peaks FROM head;

-- batches --
-- All batches, newest first, or the one named.
SELECT number, id, targets, spec, seal, items, created_us, first_seq, state, reason, reason_code, hold, limits,
  started_us, ended_us, sent, lookups, rate_limited, refusals, consecutive, cursor, next_slot_ns, slow_until_us,
  pace_per_ks, control
FROM batches WHERE ?1 IS NULL OR id = ?1 ORDER BY number DESC;

-- batch_ids --
-- The names of all batches.
SELECT number, id FROM batches;

-- tallies --
-- A batch's tallies.
SELECT state, currency, items, minor FROM tallies WHERE batch = ?;

-- workers --
-- A batch's workers that have not left.
SELECT fence, batch, actor, joined_us, lease_until_us, left_us FROM workers WHERE batch = ? AND left_us IS NULL;

-- present_workers --
-- All workers that have not left.
SELECT fence, batch, actor, joined_us, lease_until_us, left_us FROM workers WHERE left_us IS NULL;

-- items --
-- A page of a batch's items in input order: ?1 is the batch's place, ?2 the place to start behind.
SELECT place - ?1, id, coalesce(target, id), minor, currency, coalesce(fields, '{}'), state, settlement, generation,
  step, attempts, spent, not_before_us, reference, billed_minor, billed_currency, code, message, coalesce(carry, '{}'),
  first_sent_us, updated_us
FROM items WHERE place > ?2 AND place < ?1 + 4294967296
ORDER BY place LIMIT ?3;

-- billing --
-- A batch's items between two places, each column as one text with a value a line (see Ledger.billing): no row is ever made an
-- object. ?3 is the batch's place.
SELECT group_concat(place - ?3, char(10)), group_concat(id, char(10)), group_concat(ifnull(reference, ''), char(10)),
  group_concat(CASE state WHEN 2 THEN 'committed' WHEN 0 THEN 'planned' WHEN 1 THEN 'pending' WHEN 3 THEN 'refused'
    WHEN 4 THEN 'unknown' ELSE 'skipped' END, char(10)),
  group_concat(CASE settlement WHEN 0 THEN 'none' WHEN 1 THEN 'pending' WHEN 2 THEN 'succeeded' WHEN 3 THEN 'failed'
    ELSE 'returned' END, char(10)),
  group_concat(ifnull(billed_minor, ''), char(10)), group_concat(ifnull(billed_currency, ''), char(10)),
  group_concat(coalesce(target, id), char(10))
FROM items NOT INDEXED WHERE place > ?1 AND place <= ?2 AND place < ?3 + 4294967296;

-- billing_next --
-- The place before the next item of a batch, where a stretch has none.
SELECT min(place) - 1 FROM items WHERE place > ?1 AND place < ?2;

-- items_planned --
-- As above, the planned ones, from their index.
SELECT place - ?1, id, coalesce(target, id), minor, currency, coalesce(fields, '{}'), state, settlement, generation,
  step, attempts, spent, not_before_us, reference, billed_minor, billed_currency, code, message, coalesce(carry, '{}'),
  first_sent_us, updated_us
FROM items INDEXED BY items_planned WHERE state = 0 AND place > ?2 AND place < ?1 + 4294967296
ORDER BY place LIMIT ?3;

-- items_open --
-- As above, the pending ones (?4 is their state), by way of their open intents.
SELECT place - ?1, id, coalesce(target, id), minor, currency, coalesce(fields, '{}'), state, settlement, generation,
  step, attempts, spent, not_before_us, reference, billed_minor, billed_currency, code, message, coalesce(carry, '{}'),
  first_sent_us, updated_us
FROM items
WHERE place IN (SELECT o.place FROM intents AS o WHERE o.place > ?2 AND o.place < ?1 + 4294967296) AND state = ?4
ORDER BY place LIMIT ?3;

-- items_committed --
-- As above, the committed ones, which are most of a batch.
SELECT place - ?1, id, coalesce(target, id), minor, currency, coalesce(fields, '{}'), state, settlement, generation,
  step, attempts, spent, not_before_us, reference, billed_minor, billed_currency, code, message, coalesce(carry, '{}'),
  first_sent_us, updated_us
FROM items WHERE place > ?2 AND place < ?1 + 4294967296 AND state = 2
ORDER BY place LIMIT ?3;

-- items_ended_otherwise --
-- As above, of one of the states that few items end in (?4), from their index.
SELECT place - ?1, id, coalesce(target, id), minor, currency, coalesce(fields, '{}'), state, settlement, generation,
  step, attempts, spent, not_before_us, reference, billed_minor, billed_currency, code, message, coalesce(carry, '{}'),
  first_sent_us, updated_us
FROM items INDEXED BY items_ended_otherwise
WHERE state >= 3 AND state = ?4 AND place > ?2 AND place < ?1 + 4294967296
ORDER BY place LIMIT ?3;

-- item --
-- One item by its id.
SELECT place - ?1, id, coalesce(target, id), minor, currency, coalesce(fields, '{}'), state, settlement, generation,
  step, attempts, spent, not_before_us, reference, billed_minor, billed_currency, code, message, coalesce(carry, '{}'),
  first_sent_us, updated_us
FROM items WHERE id = ?2 AND place = (SELECT ?1 + n FROM item_ids WHERE batch = ?1 >> 32 AND id = ?2);

-- open_intents --
-- Some open intents with their items: ?1 is the batch's place, ?2 a JSON list of numbers.
SELECT i.place - ?1, i.id, coalesce(i.target, i.id), i.minor, i.currency, coalesce(i.fields, '{}'), i.state,
  i.settlement, i.generation, i.step, i.attempts, i.spent, i.not_before_us, i.reference, i.billed_minor,
  i.billed_currency, i.code, i.message, coalesce(i.carry, '{}'), i.first_sent_us, i.updated_us,
  o.place - ?1, o.target, o.fence, o.key, o.digest, o.first_sent_us, o.sent_us, o.send_by_us, o.deadline_us, o.seen_us,
  o.flags, o.code, o.message, o.lookups, o.lookup_failures, o.retry_at_us, o.hold_minor, o.hold_currency,
  o.method, o.path, o.headers, o.body
FROM intents AS o JOIN items AS i ON i.place = o.place
WHERE o.place IN (SELECT ?1 + value FROM json_each(?2))
ORDER BY o.place;

-- events --
-- Events of the whole ledger.
SELECT seq, place, CAST(body AS BLOB) FROM events WHERE seq > ?1 ORDER BY seq LIMIT ?2;

-- events_of_batch --
-- Events of one batch, its items' included, from its first one on: ?3 is the batch's place.
SELECT seq, place, CAST(body AS BLOB) FROM events
WHERE seq > ?1 AND +place >= ?3 AND +place < ?3 + 4294967296
ORDER BY seq LIMIT ?2;

-- events_of_item --
-- Events of one item: ?3 is its place.
SELECT seq, place, CAST(body AS BLOB) FROM events WHERE place = ?3 AND seq > ?1 ORDER BY seq LIMIT ?2;

-- event --
-- One event.
SELECT CAST(body AS BLOB) FROM events WHERE seq = ?;

-- last_event --
-- The last event there is.
SELECT seq, CAST(body AS BLOB) FROM events ORDER BY seq DESC LIMIT 1;

-- outputs --
-- What the calls of some items returned.
SELECT place & 4294967295, output, kept FROM outputs WHERE place BETWEEN ? AND ?;

-- findings --
-- A batch's discrepancies, oldest first.
SELECT id, item, kind, data, state, opened_us FROM findings WHERE batch = ? ORDER BY id;

-- found_ids --
-- How many of a batch's items are found by their ids, each once: ?1 is the batch's number.
SELECT count(*) FROM item_ids AS x JOIN items AS i ON i.place = x.batch << 32 | x.n AND i.id = x.id WHERE x.batch = ?1;

-- nodes --
-- The kept hashes of subtrees.
SELECT level, idx, hash FROM nodes;

-- all_opens --
-- All open intents of a batch, without their requests: ?1 is the batch's place.
SELECT place - ?1, target, fence, key, digest, first_sent_us, sent_us, send_by_us, deadline_us, seen_us, flags, code,
  message, lookups, lookup_failures, retry_at_us, hold_minor, hold_currency
FROM intents WHERE place > ?1 AND place < ?1 + 4294967296;
