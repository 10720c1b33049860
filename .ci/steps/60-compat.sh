# Foreign Kafka clients, where the suites are at hand.
npm run --silent compat
