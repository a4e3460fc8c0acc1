-- Statements of a write transaction. Each block has a name and says what it is for. Whole groups of rows come as arrays,
-- one a column.

-- begin --
-- A transaction whose statements see what is committed when they start: under the lock on the head that is everything.
BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE;

-- head --
-- The head of the trail, locked: every writer takes this lock first, so there is one at a time and no deadlock.
SELECT size, last_us, last_leaf, peaks, turn FROM head FOR UPDATE;

-- clock --
-- The server's time now, once the lock is held, in microseconds since the epoch.
SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::bigint;

-- save_head --
-- The head after this transaction's events.
UPDATE head SET size = $1, last_us = $2, last_leaf = $3, peaks = $4, turn = turn + 1;

-- take_turn --
-- A transaction without events counts too: others must not rely on what they read before it.
UPDATE head SET turn = turn + 1;

-- add_events --
-- Events of the trail.
INSERT INTO events (seq, place, body, mark) SELECT * FROM unnest($1::bigint[], $2::bigint[], $3::text[], $4::bigint[]);

-- add_payloads --
-- What is kept of payloads.
INSERT INTO payloads (seq, kind, place, digest, body)
SELECT * FROM unnest($1::bigint[], $2::text[], $3::bigint[], $4::bytea[], $5::bytea[]);

-- add_nodes --
-- The hashes of subtrees that became complete.
INSERT INTO nodes (level, idx, hash) SELECT * FROM unnest($1::bigint[], $2::bigint[], $3::bytea[]);

-- batch --
-- A batch by its id.
SELECT number, id, targets, spec, seal, items, created_us, first_seq, state, reason, reason_code, hold, limits,
  started_us, ended_us, sent, lookups, rate_limited, refusals, consecutive, cursor, next_slot_ns, slow_until_us,
  pace_per_ks, control
FROM batches WHERE id = $1;

-- tallies_of --
-- The tallies of a batch by its id.
SELECT t.state, t.currency, t.items, t.minor FROM tallies AS t JOIN batches AS b ON b.number = t.batch WHERE b.id = $1;

-- workers_of --
-- The workers of a batch, by its id, that have not left.
SELECT w.fence, w.batch, w.actor, w.joined_us, w.lease_until_us, w.left_us
FROM workers AS w JOIN batches AS b ON b.number = w.batch WHERE b.id = $1 AND w.left_us IS NULL;

-- add_batch --
-- A new batch; its number is one more than the highest.
INSERT INTO batches (number, id, targets, spec, seal, items, created_us, first_seq, state, reason, reason_code, hold,
  limits, started_us, ended_us, sent, lookups, rate_limited, refusals, consecutive, cursor, next_slot_ns, slow_until_us,
  pace_per_ks, control)
VALUES ((SELECT coalesce(max(number), 0) + 1 FROM batches), $1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14,
  $15, $16, $17, $18, $19, $20, $21, $22, $23, $24)
RETURNING number;

-- save_batch --
-- What changes of a batch.
UPDATE batches SET spec = $1, seal = $2, items = $3, state = $4, reason = $5, reason_code = $6, hold = $7, limits = $8,
  started_us = $9, ended_us = $10, sent = $11, lookups = $12, rate_limited = $13, refusals = $14, consecutive = $15,
  cursor = $16, next_slot_ns = $17, slow_until_us = $18, pace_per_ks = $19, control = $20
WHERE number = $21;

-- tallies --
-- A batch's tallies.
SELECT state, currency, items, minor FROM tallies WHERE batch = $1;

-- save_tallies --
-- Some tallies of batch $1, as absolute values.
INSERT INTO tallies (batch, state, currency, items, minor)
SELECT $1, v.* FROM unnest($2::bigint[], $3::text[], $4::bigint[], $5::bigint[]) AS v
ON CONFLICT (batch, state, currency) DO UPDATE SET items = excluded.items, minor = excluded.minor;

-- copy_items --
-- New items, streamed.
COPY items (place, id, target, minor, currency, fields, state, updated_us) FROM STDIN;

-- rows --
-- Some items by place.
SELECT place & 4294967295, id, coalesce(target, id), minor, currency, coalesce(fields, '{}'), state, settlement, generation,
  step, attempts, spent, not_before_us, reference, billed_minor, billed_currency, code, message, coalesce(carry, '{}'),
  first_sent_us, updated_us
FROM items WHERE place = ANY ($1);

-- planned_after --
-- The next planned items in input order: $1 is the batch's place, $2 the place to start behind. A row that somebody
-- else holds (a person's own transaction) is left for the next sweep and waited for by nobody.
SELECT place - $1, id, coalesce(target, id), minor, currency, coalesce(fields, '{}'), state, settlement, generation,
  step, attempts, spent, not_before_us, reference, billed_minor, billed_currency, code, message, coalesce(carry, '{}'),
  first_sent_us, updated_us
FROM items WHERE state = 0 AND place > $2 AND place < $1::bigint + 4294967296
ORDER BY place LIMIT $3 FOR UPDATE SKIP LOCKED;

-- number_of --
-- An item's number by its id: $1 is the batch's number.
SELECT place & 4294967295 FROM items WHERE (place >> 32) = $1 AND id = $2;

-- begin_items --
-- Items become pending by a worker's intents, at time $2.
UPDATE items SET state = 1, attempts = attempts + 1, code = NULL, message = NULL, updated_us = $2
WHERE place = ANY ($1);

-- save_items --
-- What changes of items.
UPDATE items AS i SET state = v.state, settlement = v.settlement, generation = v.generation, step = v.step,
  attempts = v.attempts, spent = v.spent, not_before_us = v.not_before_us, reference = v.reference,
  billed_minor = v.billed_minor, billed_currency = v.billed_currency, code = v.code, message = v.message,
  carry = v.carry, first_sent_us = v.first_sent_us, updated_us = v.updated_us
FROM unnest($1::bigint[], $2::bigint[], $3::bigint[], $4::bigint[], $5::bigint[], $6::bigint[], $7::bigint[],
    $8::bigint[], $9::text[], $10::bigint[], $11::text[], $12::text[], $13::text[], $14::text[], $15::bigint[],
    $16::bigint[])
  AS v (place, state, settlement, generation, step, attempts, spent, not_before_us, reference, billed_minor,
    billed_currency, code, message, carry, first_sent_us, updated_us)
WHERE i.place = v.place;

-- sealed --
-- What was sealed of the items from place $1 to $2.
SELECT id, coalesce(target, id), minor, currency, coalesce(fields, '{}')
FROM items WHERE place BETWEEN $1 AND $2 ORDER BY place;

-- opens --
-- Open intents of some items, by place, without their requests.
SELECT place & 4294967295, target, fence, key, digest, first_sent_us, sent_us, send_by_us, deadline_us, seen_us, flags, code,
  message, lookups, lookup_failures, retry_at_us, hold_minor, hold_currency
FROM intents WHERE place = ANY ($1);

-- holders --
-- Which of some targets of batch $1 are held, and by which item.
SELECT target, place & 4294967295 FROM intents WHERE (place >> 32) = $1 AND target = ANY ($2);

-- holders_of --
-- Who holds the targets of some items of batch $1, by place.
SELECT o.target, o.place & 4294967295 FROM intents AS o
WHERE (o.place >> 32) = $1
  AND o.target = ANY (ARRAY (SELECT coalesce(i.target, i.id) FROM items AS i WHERE i.place = ANY ($2)));

-- orphans --
-- Pending items of batch $1 whose worker is none of the living.
SELECT place & 4294967295 FROM intents
WHERE place > $1::bigint << 32 AND place < ($1::bigint + 1) << 32 AND flags < 32 AND fence <> ALL ($2::bigint[])
ORDER BY place LIMIT $3;

-- open_intents --
-- New open intents.
INSERT INTO intents (place, target, fence, key, digest, first_sent_us, sent_us, send_by_us, deadline_us, hold_minor,
  hold_currency, method, path, headers, body)
SELECT * FROM unnest($1::bigint[], $2::text[], $3::bigint[], $4::text[], $5::bytea[], $6::bigint[], $7::bigint[],
  $8::bigint[], $9::bigint[], $10::bigint[], $11::text[], $12::text[], $13::text[], $14::text[], $15::bytea[]);

-- change_intents --
-- What changes of open intents under one key.
UPDATE intents AS o SET fence = v.fence, first_sent_us = v.first_sent_us, sent_us = v.sent_us, send_by_us = v.send_by_us,
  deadline_us = v.deadline_us, seen_us = v.seen_us, flags = v.flags, code = v.code, message = v.message,
  lookups = v.lookups, lookup_failures = v.lookup_failures, retry_at_us = v.retry_at_us, hold_minor = v.hold_minor,
  hold_currency = v.hold_currency
FROM unnest($1::bigint[], $2::bigint[], $3::bigint[], $4::bigint[], $5::bigint[], $6::bigint[], $7::bigint[],
    $8::bigint[], $9::text[], $10::text[], $11::bigint[], $12::bigint[], $13::bigint[], $14::bigint[], $15::text[])
  AS v (place, fence, first_sent_us, sent_us, send_by_us, deadline_us, seen_us, flags, code, message, lookups,
    lookup_failures, retry_at_us, hold_minor, hold_currency)
WHERE o.place = v.place;

-- change_requests --
-- The next steps' keys and requests.
UPDATE intents AS o SET key = v.key, digest = v.digest, method = v.method, path = v.path, headers = v.headers,
  body = v.body
FROM unnest($1::bigint[], $2::text[], $3::bytea[], $4::text[], $5::text[], $6::text[], $7::bytea[])
  AS v (place, key, digest, method, path, headers, body)
WHERE o.place = v.place;

-- close_intents --
-- Open intents that are decided, by place.
DELETE FROM intents WHERE place = ANY ($1);

-- add_outputs --
-- What committed calls returned.
INSERT INTO outputs (place, output, kept) SELECT * FROM unnest($1::bigint[], $2::bytea[], $3::text[])
ON CONFLICT (place) DO UPDATE SET output = excluded.output, kept = excluded.kept;

-- add_findings --
-- Discrepancies; their numbers go on from the highest.
INSERT INTO findings (id, batch, item, kind, data, opened_us)
SELECT (SELECT coalesce(max(id), 0) FROM findings) + v.nth, v.batch, v.item, v.kind, v.data, v.opened_us
FROM unnest($1::bigint[], $2::text[], $3::text[], $4::text[], $5::bigint[]) WITH ORDINALITY
  AS v (batch, item, kind, data, opened_us, nth);

-- erase_fields --
-- An item's fields without what was erased.
UPDATE items SET fields = $1 WHERE place = $2;

-- erase_payloads --
-- The payloads of an item: their digests stay.
UPDATE payloads SET body = NULL, erased_by = $1 WHERE place = $2 AND body IS NOT NULL;

-- erase_output --
-- What an item's call returned.
UPDATE outputs SET output = NULL, kept = NULL WHERE place = $1;

-- add_worker --
-- A worker; its fence is higher than any before.
INSERT INTO workers (fence, batch, actor, joined_us, lease_until_us, left_us)
VALUES ((SELECT coalesce(max(fence), 0) + 1 FROM workers), $1, $2, $3, $4, $5)
RETURNING fence;

-- worker --
-- A worker by its fence.
SELECT fence, batch, actor, joined_us, lease_until_us, left_us FROM workers WHERE fence = $1;

-- workers --
-- A batch's workers that have not left.
SELECT fence, batch, actor, joined_us, lease_until_us, left_us FROM workers WHERE batch = $1 AND left_us IS NULL;

-- save_worker --
-- A worker's lease and leaving.
UPDATE workers SET lease_until_us = $1, left_us = $2 WHERE fence = $3;

-- claimed --
-- Those of some references that a committed item carries.
SELECT DISTINCT i.reference FROM unnest($1::text[]) AS r (reference) JOIN items AS i ON i.reference = r.reference
WHERE i.state = 2;

-- claimed_on --
-- The same, of items on one target. With what their batches were sealed as, since that says at which provider.
SELECT DISTINCT i.reference, b.spec FROM unnest($1::text[]) AS r (reference) JOIN items AS i ON i.reference = r.reference
JOIN batches AS b ON b.number = i.place >> 32
WHERE i.state = 2 AND coalesce(i.target, i.id) = $2;

-- extents --
-- How many items each batch has, as this transaction sees it.
SELECT number, items FROM batches;

-- save_meta --
-- A fact about the ledger itself.
INSERT INTO meta (name, value) VALUES ($1, $2) ON CONFLICT (name) DO UPDATE SET value = excluded.value;
