# Three brokers over PostgreSQL and an S3 double: what clients see under faults, alone and in pairs; then SIGKILL under load;
# then their metadata on the move.
set -e
npm run --silent consistency -- --on cluster --minutes "${CLUSTER_MINUTES:-2}"
ROUNDS=${CLUSTER_ROUNDS:-5} npm run --silent killtest -- cluster
# migrate, backup and restore by the command line, killed and run again, over an S3 double and PostgreSQL.
npm run --silent moves -- --on double --short
# The database put back to an earlier time under them; then a broker under the overloads that cost most.
npm run --silent put-back
npm run --silent overload -- --seconds 5 --only slow,bucket
