-- Statements of the trail's own reading side. Places, states and settlements as in migrations/0001_ledger.sql.

-- meta --
-- A fact about the ledger itself.
SELECT value FROM meta WHERE name = $1;

-- head --
-- The head of the trail.
SELECT size, last_us, last_leaf, peaks FROM head;

-- extent --
-- The last event there is.
SELECT coalesce(max(seq), 0) FROM events;

-- bodies --
-- The bytes of events $1 to $2, both included.
SELECT seq, convert_to(body, 'UTF8') FROM events WHERE seq BETWEEN $1 AND $2 ORDER BY seq;

-- filed --
-- The same with the place they are filed under, and the mark.
SELECT seq, place, convert_to(body, 'UTF8'), mark FROM events WHERE seq BETWEEN $1 AND $2 ORDER BY seq;

-- chunk --
-- Place and bytes of events $1 to $2, both included.
SELECT place, convert_to(body, 'UTF8') FROM events WHERE seq BETWEEN $1 AND $2 ORDER BY seq;

-- chunk_of --
-- Of events $1 to $2, those under a place from $3 to $4; what is filed under none counts as the lowest.
SELECT seq, place, convert_to(body, 'UTF8') FROM events
WHERE seq BETWEEN $1 AND $2 AND coalesce(place + 0, -9223372036854775808) BETWEEN $3 AND $4 ORDER BY seq;

-- of_item --
-- Events filed under an item, or under a batch itself.
SELECT seq, convert_to(body, 'UTF8') FROM events WHERE place = $1 ORDER BY seq;

-- nodes --
-- Kept hashes of one level, $2 to $3, both included.
SELECT idx, hash FROM nodes WHERE level = $1 AND idx BETWEEN $2 AND $3 ORDER BY idx;

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
SELECT place & 4294967295 FROM items WHERE (place >> 32) = $2 AND id = $1;

-- tallies --
-- A batch's tallies.
SELECT state, currency, items, minor FROM tallies WHERE batch = $1;

-- stored --
-- The items $2 to $3 of the batch whose place is $1, as they are stored.
SELECT place - $1, id, coalesce(target, id), minor, currency, coalesce(fields, '{}'), state, settlement, generation, step,
  attempts, spent, not_before_us, reference, billed_minor, billed_currency, code, message, coalesce(carry, '{}'),
  first_sent_us, updated_us
FROM items WHERE place BETWEEN $1::bigint + $2 AND $1::bigint + $3 ORDER BY place;

-- sealed --
-- What was sealed of a batch's items: $1 is the batch's place.
SELECT id, coalesce(target, id), minor, currency, coalesce(fields, '{}')
FROM items WHERE place > $1 AND place < $1::bigint + 4294967296 ORDER BY place;

-- holds --
-- What the open intents of a batch hold: $1 is the batch's place.
SELECT place - $1, hold_minor, hold_currency FROM intents WHERE place > $1 AND place < $1::bigint + 4294967296;

-- opens --
-- The open intents of a batch with everything, and their items' targets: $1 is the batch's place.
SELECT o.place - $1, o.target, o.fence, o.key, o.digest, o.first_sent_us, o.sent_us, o.send_by_us, o.deadline_us,
  o.seen_us, o.flags, o.code, o.message, o.lookups, o.lookup_failures, o.retry_at_us, o.hold_minor, o.hold_currency,
  o.method, o.path, o.headers, o.body, coalesce(i.target, i.id, '')
FROM intents AS o LEFT JOIN items AS i ON i.place = o.place
WHERE o.place > $1 AND o.place < $1::bigint + 4294967296 ORDER BY o.place;

-- workers --
-- All workers there ever were.
SELECT fence, batch, actor, joined_us, lease_until_us, left_us FROM workers ORDER BY fence;

-- strangers --
-- Tables in which a row belongs to none of the batches: $1 is the number of the last one.
SELECT 'items' WHERE EXISTS (SELECT 1 FROM items WHERE place <= 4294967296)
  OR EXISTS (SELECT 1 FROM items WHERE place >= ($1::bigint + 1) << 32)
UNION ALL SELECT 'intents' WHERE EXISTS (SELECT 1 FROM intents WHERE place <= 4294967296)
  OR EXISTS (SELECT 1 FROM intents WHERE place >= ($1::bigint + 1) << 32)
UNION ALL SELECT 'outputs' WHERE EXISTS (SELECT 1 FROM outputs WHERE place <= 4294967296)
  OR EXISTS (SELECT 1 FROM outputs WHERE place >= ($1::bigint + 1) << 32)
UNION ALL SELECT 'tallies' WHERE EXISTS (SELECT 1 FROM tallies WHERE batch NOT BETWEEN 1 AND $1)
UNION ALL SELECT 'workers' WHERE EXISTS (SELECT 1 FROM workers WHERE batch NOT BETWEEN 1 AND $1)
UNION ALL SELECT 'findings' WHERE EXISTS (SELECT 1 FROM findings WHERE batch NOT BETWEEN 1 AND $1);

-- outputs --
-- What the calls of a batch's items $2 to $3 returned, where it is there: $1 is the batch's place.
SELECT place - $1, output, kept FROM outputs
WHERE place BETWEEN $1::bigint + $2 AND $1::bigint + $3 AND (output IS NOT NULL OR kept IS NOT NULL) ORDER BY place;

-- findings --
-- A batch's discrepancies.
SELECT id, item, kind, data, state, opened_us FROM findings WHERE batch = $1 ORDER BY id;

-- payloads --
-- Kept payloads of the whole ledger, by event.
SELECT seq, kind, place, digest, body, erased_by FROM payloads ORDER BY seq;

-- payloads_at --
-- Kept payloads of one place.
SELECT seq, kind, place, digest, body, erased_by FROM payloads WHERE place = $1 ORDER BY seq;
