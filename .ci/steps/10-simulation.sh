# Storage, sequencer and table commits under faults and crashes, seeded.
SEEDS=${SEEDS:-500} npm run --silent simulate
