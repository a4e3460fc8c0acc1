"""Writes a first batch file with a comment on every setting, and a sample input that runs against ``payonce simulate``.

Never overwrites anything: a batch file that exists may be the record of how money was moved.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

from payonce.core.errors import UsageError
from payonce.service import ready

SIMULATOR_PORT: Final = 8765

BATCH_FILE: Final = """\
# A batch for payonce. Try it as it is: start `payonce simulate` in another terminal, then here
#
#     payonce plan batch.toml       reads, checks and seals; sends nothing
#     payonce run batch.toml        sends; kill it whenever you like and run the same command again
#
# Every setting is described in docs/reference/batch-file.md.

[batch]
id = "{batch}"                   # unique in the ledger, and part of every idempotency key
operation = "refund"                   # refund, payout, invoice, call or a name of your own
input = "refunds.csv"                  # relative to this file; .csv .tsv .jsonl .xlsx .parquet
on_duplicate = "error"                 # or "skip", which drops rows that are identical to an earlier one

[item]                                 # which column is which
id = "refund_request"                  # a stable id of your own for each item
target = "charge_id"                   # what is acted on; never two calls at once on one target
amount = "amount"                      # in major units, 12.50; or amount_minor = "amount_cents"
currency = "currency"                  # or {value = "USD"} where the file has no such column

[limits]
concurrency = 16                       # calls in flight at once
{rate}attempts = 5                           # per item; waiting for a rate limit to pass counts for nothing
{budget}max_amount = {USD = "200.00"}          # for one item; larger ones are a problem of the input
stop_after_refusals = 20               # in all
stop_after_consecutive = 5             # in a row
grace = "30s"                          # how long calls in flight may take after Ctrl-C

[ledger]
url = "sqlite:payonce.db"              # relative to this file; keep it as long as your books

[trail]                                # every event is hashed; a key makes checkpoints of it that nobody can forge
# key = "trail.key"                    # made by: payonce trail key --out trail.key
# publish = ["/mnt/elsewhere/checkpoints.txt"]     # a file on another machine, "-", or {command = ["prog", "arg"]}
# payloads = "digest"                  # of calls and answers keep "digest", "redacted" or "full" bodies

[provider]
kind = "http"                          # any HTTP API; payonce providers lists all kinds
base_url = "{url}"
account = "simulated"                  # the batch is bound to it
# Credentials come from the environment only:
# headers = {Authorization = "Bearer ${API_TOKEN}"}
# The times here and the lag below are those of the simulator, and decide how long a run waits for what a crash left.
# Of a real provider, rather too long than too short: by default "10s" and "30s", and a lag of some seconds.
timeout = "{timeout}"                         # for one whole call
max_execution = "{execution}"                   # after this long an unanswered call can no longer start executing

[provider.call]
method = "POST"
path = "/v1/refunds"
json = {charge = "{target}", amount = "{amount_minor}", currency = "{currency_lower}", metadata = {ref = "{id}"}}
reference = "id"                       # where the answer has the provider's reference (JMESPath)
billed = "amount"                      # and what was billed
billed_unit = "minor"
billed_currency = "currency"

[provider.key]                         # leave this table out if the API has no idempotency keys
header = "Idempotency-Key"
format = "hex"                         # hex, uuid or base32
retention = "24h"                      # how long the API promises to remember a key
stores_errors = true                   # whether it replays error answers too
replay_header = "Idempotent-Replayed"

[provider.lookup]                      # leave this table out if executions cannot be looked up
path = "/v1/refunds?charge={target}&limit=100"
found = "data"                         # the list of executions (JMESPath)
reference = "id"
amount = "amount"
amount_unit = "minor"
currency = "currency"
time = "created"
own_reference = "metadata.ref"         # where the id that the call sent comes back
lag = "{lag}"                             # how long an execution may take to show; see the times above

[[provider.answers]]                   # what a certain answer means, the first that matches
status = 400
when = "error.code == 'charge_already_refunded'"
outcome = "already_done"               # executed, refused, not_executed, unresolved, already_done or stop

[[provider.answers]]
status = 400
when = "error.type == 'invalid_request_error'"
outcome = "refused"

[statement]                            # how to read the provider's report later on; sealed with the batch
reference = "refund_id"                # the provider's id of the execution, as [provider.call] reference has it
own_reference = "reference"            # where the report repeats our item's id
key = "idempotency_key"
amount_minor = "amount"
currency = "currency"
time = "created"
"""

_RATE: Final = 'rate = "50/s"                          # never faster; over all processes together\n'
_BUDGET: Final = 'budget = {USD = "1000.00"}             # never more than this, reservations included\n'


def write(folder: Path, template: str | None = None) -> tuple[Path, ...]:
    """Writes ``batch.toml`` and its input into a folder, which is made if need be, and returns both paths.

    ``template`` names one of the ready files of paid calls. Raises UsageError for an unknown one, where one of them exists, before anything is written, or where the folder cannot be written to.
    """
    if template is not None:
        texts = {folder / name: text for name, text in ready.files(template).items()}
    else:
        first = batch_file(url=f"http://127.0.0.1:{SIMULATOR_PORT}", batch="first-refunds")
        texts = {folder / "batch.toml": first, folder / "refunds.csv": sample(25)}
    for path in texts:
        if path.exists():
            raise UsageError(
                f"{path} exists and is left as it is", code="file_exists", hint="name another folder: payonce init DIR"
            )
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for path, text in texts.items():
            with path.open("x", encoding="utf-8") as file:
                file.write(text)
    except OSError as error:
        raise UsageError(
            f"cannot write to {folder}: {error.strerror}", code="file_unwritable", hint="name a folder of your own"
        ) from error
    return tuple(texts)


def batch_file(*, url: str, batch: str, brisk: bool = False) -> str:
    """The commented batch file against a simulated provider at ``url``.

    ``brisk`` leaves rate and budget out and promises what only a provider on this machine keeps: an answer comes within two
    seconds and an execution shows at once, so that what a crash left is looked up soon.
    """
    chosen = {
        "{url}": url,
        "{batch}": batch,
        "{rate}": "" if brisk else _RATE,
        "{budget}": "" if brisk else _BUDGET,
        "{timeout}": "2s" if brisk else "4s",
        "{execution}": "1s" if brisk else "4s",
        "{lag}": "0s" if brisk else "1s",
    }
    text = BATCH_FILE
    for name, value in chosen.items():
        text = text.replace(name, value)
    return text


def sample(count: int) -> str:
    """A sample input of refunds: one row each, amounts that differ, one charge with two partial refunds."""
    rows = ["refund_request,charge_id,amount,currency,reason"]
    for number in range(1, count + 1):
        charge = max(number, 2)
        rows.append(f"RR-{number:04},ch_{charge:04},{number % 40 + 4}.{number * 7 % 100:02},USD,damaged in transit")
    return "\n".join(rows) + "\n"
