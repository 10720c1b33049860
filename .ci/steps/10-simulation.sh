# Storage, sequencer, transactions and table commits in one world under faults and crashes: 500 seeded runs, half of them
# on a local disk, half on an object store; 50 of table commits with real Parquet files.
SEEDS=${SEEDS:-250} npm run --silent simulate
