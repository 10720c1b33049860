# Foreign Kafka clients, where the suites are at hand. Some of their tests are timing-bound on any broker, so a failing
# run is repeated once, and says so.
npm run --silent compat -- quick || { printf 'compat: once more\n'; npm run --silent compat -- quick; }
