# SIGKILL under load, then an audit.
ROUNDS=${ROUNDS:-20} npm run --silent killtest
