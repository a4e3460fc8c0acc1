-- Version 4: bodies of events with their recurring parts as single control characters, which canonical JSON never holds.
--
-- What is there already reads as it stands, and stays. The view shows every event as the JSON it is, to any program. The
-- codes are those of ledger/sqlite_bodies.py, in its order.
CREATE VIEW trail (seq, batch, item, event) AS
SELECT seq, place >> 32, nullif(place & 4294967295, 0),
  replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(
  replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(
  replace(body
  , char(1), '{"amount":"')
  , char(2), '","at":"')
  , char(3), '","attempt":1,"batch":"')
  , char(4), '","currency":"')
  , char(5), '","generation":0,"item":"')
  , char(6), '","key":"')
  , char(16), '","request":"')
  , char(17), '","reserve":{"amount":"')
  , char(18), '","seq":')
  , char(19), ',"step":0,"type":"intent","worker":')
  , char(20), ',"step":0,"type":"commit","worker":')
  , char(21), '","billed":"')
  , char(22), '","billed_currency":"')
  , char(23), '","data":{"end":"')
  , char(24), '","request_id":"')
  , char(25), '","response":"')
  , char(26), '","start":"')
  , char(28), '","status":')
  , char(29), '},"generation":0,"item":"')
  , char(30), '","reference":"')
  , char(31), ',"settlement":"pending"')
FROM events;
