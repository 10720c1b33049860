# Storage, sequencer, transactions and table commits in one world under faults and crashes: 500 seeds on a local disk,
# 500 on an object store; 50 of table commits with real Parquet files.
SEEDS=${SEEDS:-500} npm run --silent simulate
