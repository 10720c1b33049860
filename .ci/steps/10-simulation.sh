# Storage, sequencer, transactions and table commits in one world under faults and crashes: 500 seeded runs, half of them
# on a local disk, half on an object store; 50 of table commits with real Parquet files.
set -e
SEEDS=${SEEDS:-250} npm run --silent simulate
# A log that is long beside what waits to be merged: what its catch-up costs.
FLOE_FAR_BEHIND_MIB=232 npx vitest run src/storage/log/object-log.test.ts -t 'far behind' --testTimeout 120000
