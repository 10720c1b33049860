# What clients see over kill -9, pauses and slow storage, held against the log and the table. 30 minutes: -- --minutes 30.
npm run --silent consistency -- --minutes "${MINUTES:-2}"
