-- Statements of the reading side: what is durable, beside a running write.

-- meta --
-- Facts about the ledger itself.
SELECT name, value FROM meta;

-- head --
-- The head of the trail.
SELECT size, last_us, last_leaf, peaks FROM head;

-- clock --
-- The server's time now, in microseconds since the epoch.
SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::bigint;

-- batches --
-- All batches, newest first, or the one named.
SELECT number, id, targets, spec, seal, items, created_us, first_seq, state, reason, reason_code, hold, limits,
  started_us, ended_us, sent, lookups, rate_limited, refusals, consecutive, cursor, next_slot_ns, slow_until_us,
  pace_per_ks, control
FROM batches WHERE $1::text IS NULL OR id = $1 ORDER BY number DESC;

-- batch_ids --
-- The names of all batches.
SELECT number, id FROM batches;

-- tallies_of --
-- The tallies of a batch by its id.
SELECT t.state, t.currency, t.items, t.minor FROM tallies AS t JOIN batches AS b ON b.number = t.batch WHERE b.id = $1;

-- workers_of --
-- The workers of a batch, by its id, that have not left.
SELECT w.fence, w.batch, w.actor, w.joined_us, w.lease_until_us, w.left_us
FROM workers AS w JOIN batches AS b ON b.number = w.batch WHERE b.id = $1 AND w.left_us IS NULL;

-- tallies --
-- A batch's tallies.
SELECT state, currency, items, minor FROM tallies WHERE batch = $1;

-- items --
-- A page of a batch's items in input order: $1 is the batch's place, $2 the place to start behind.
SELECT place - $1, id, coalesce(target, id), minor, currency, coalesce(fields, '{}'), state, settlement, generation,
  step, attempts, spent, not_before_us, reference, billed_minor, billed_currency, code, message, coalesce(carry, '{}'),
  first_sent_us, updated_us
FROM items WHERE place > $2 AND place < $1::bigint + 4294967296
ORDER BY place LIMIT $3;

-- items_planned --
-- As above, the planned ones, from their index.
SELECT place - $1, id, coalesce(target, id), minor, currency, coalesce(fields, '{}'), state, settlement, generation,
  step, attempts, spent, not_before_us, reference, billed_minor, billed_currency, code, message, coalesce(carry, '{}'),
  first_sent_us, updated_us
FROM items WHERE state = 0 AND place > $2 AND place < $1::bigint + 4294967296
ORDER BY place LIMIT $3;

-- items_open --
-- As above, the pending ones ($4 is their state), by way of their open intents.
SELECT place - $1, id, coalesce(target, id), minor, currency, coalesce(fields, '{}'), state, settlement, generation,
  step, attempts, spent, not_before_us, reference, billed_minor, billed_currency, code, message, coalesce(carry, '{}'),
  first_sent_us, updated_us
FROM items
WHERE place IN (SELECT o.place FROM intents AS o WHERE o.place > $2 AND o.place < $1::bigint + 4294967296) AND state = $4
ORDER BY place LIMIT $3;

-- items_committed --
-- As above, the committed ones, which are most of a batch.
SELECT place - $1, id, coalesce(target, id), minor, currency, coalesce(fields, '{}'), state, settlement, generation,
  step, attempts, spent, not_before_us, reference, billed_minor, billed_currency, code, message, coalesce(carry, '{}'),
  first_sent_us, updated_us
FROM items WHERE place > $2 AND place < $1::bigint + 4294967296 AND state = 2
ORDER BY place LIMIT $3;

-- items_ended_otherwise --
-- As above, of one of the states that few items end in ($4), from their index.
SELECT place - $1, id, coalesce(target, id), minor, currency, coalesce(fields, '{}'), state, settlement, generation,
  step, attempts, spent, not_before_us, reference, billed_minor, billed_currency, code, message, coalesce(carry, '{}'),
  first_sent_us, updated_us
FROM items
WHERE state >= 3 AND state = $4 AND place > $2 AND place < $1::bigint + 4294967296
ORDER BY place LIMIT $3;

-- item --
-- One item by its id.
SELECT place - $1, id, coalesce(target, id), minor, currency, coalesce(fields, '{}'), state, settlement, generation,
  step, attempts, spent, not_before_us, reference, billed_minor, billed_currency, code, message, coalesce(carry, '{}'),
  first_sent_us, updated_us
FROM items WHERE (place >> 32) = $1::bigint >> 32 AND id = $2;

-- billing --
-- One line of text for each item of a batch (see Ledger.billing).
SELECT concat_ws(chr(31), place - $1::bigint, id, coalesce(reference, ''),
  CASE state WHEN 2 THEN 'committed' WHEN 0 THEN 'planned' WHEN 1 THEN 'pending' WHEN 3 THEN 'refused'
    WHEN 4 THEN 'unknown' ELSE 'skipped' END,
  CASE settlement WHEN 0 THEN 'none' WHEN 1 THEN 'pending' WHEN 2 THEN 'succeeded' WHEN 3 THEN 'failed'
    ELSE 'returned' END,
  coalesce(billed_minor::text, ''), coalesce(billed_currency, ''), coalesce(target, id), '.') || chr(10)
FROM items WHERE place > $1 AND place < $1 + 4294967296
ORDER BY place;

-- open_intents --
-- Some open intents with their items, by place.
SELECT i.place & 4294967295, i.id, coalesce(i.target, i.id), i.minor, i.currency, coalesce(i.fields, '{}'), i.state,
  i.settlement, i.generation, i.step, i.attempts, i.spent, i.not_before_us, i.reference, i.billed_minor,
  i.billed_currency, i.code, i.message, coalesce(i.carry, '{}'), i.first_sent_us, i.updated_us,
  o.place & 4294967295, o.target, o.fence, o.key, o.digest, o.first_sent_us, o.sent_us, o.send_by_us, o.deadline_us,
  o.seen_us, o.flags, o.code, o.message, o.lookups, o.lookup_failures, o.retry_at_us, o.hold_minor, o.hold_currency,
  o.method, o.path, o.headers, o.body
FROM intents AS o JOIN items AS i ON i.place = o.place
WHERE o.place = ANY ($1)
ORDER BY o.place;

-- events --
-- Events of the whole ledger.
SELECT seq, place, body FROM events WHERE seq > $1 ORDER BY seq LIMIT $2;

-- events_of_batch --
-- Events of one batch, its items' included, in the order of the trail: $3 is the batch's place.
SELECT seq, place, body FROM events
WHERE seq > $1 AND place + 0 >= $3 AND place + 0 < $3::bigint + 4294967296
ORDER BY seq LIMIT $2;

-- events_of_item --
-- Events of one item: $3 is its place.
SELECT seq, place, body FROM events WHERE place = $3 AND seq > $1 ORDER BY seq LIMIT $2;

-- event --
-- One event.
SELECT body FROM events WHERE seq = $1;

-- last_event --
-- The last event there is.
SELECT seq, body FROM events ORDER BY seq DESC LIMIT 1;

-- outputs --
-- What the calls of some items returned.
SELECT place & 4294967295, output, kept FROM outputs WHERE place BETWEEN $1 AND $2;

-- findings --
-- A batch's discrepancies, oldest first.
SELECT id, item, kind, data, state, opened_us FROM findings WHERE batch = $1 ORDER BY id;

-- nodes --
-- The kept hashes of subtrees.
SELECT level, idx, hash FROM nodes;

-- all_events --
-- The whole trail.
SELECT seq, body FROM events ORDER BY seq;

-- all_items --
-- All items of a batch: $1 is the batch's place.
SELECT place - $1, id, coalesce(target, id), minor, currency, coalesce(fields, '{}'), state, settlement, generation,
  step, attempts, spent, not_before_us, reference, billed_minor, billed_currency, code, message, coalesce(carry, '{}'),
  first_sent_us, updated_us
FROM items WHERE place > $1 AND place < $1::bigint + 4294967296 ORDER BY place;

-- all_opens --
-- All open intents of a batch, without their requests: $1 is the batch's place.
SELECT place & 4294967295, target, fence, key, digest, first_sent_us, sent_us, send_by_us, deadline_us, seen_us, flags, code,
  message, lookups, lookup_failures, retry_at_us, hold_minor, hold_currency
FROM intents WHERE place > $1 AND place < $1::bigint + 4294967296;
