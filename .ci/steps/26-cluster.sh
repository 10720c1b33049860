# Three brokers over PostgreSQL and an S3 double: what clients see under faults, alone and in pairs; then SIGKILL under load.
set -e
npm run --silent consistency -- --on cluster --minutes "${CLUSTER_MINUTES:-2}"
ROUNDS=${CLUSTER_ROUNDS:-5} npm run --silent killtest -- cluster
