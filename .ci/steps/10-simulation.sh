# Storage, sequencer and table commits under faults and crashes, 500 seeds each.
SEEDS=${SEEDS:-500} npm run --silent simulate
