# Independent readers and checkers, where they are at hand.
npm run --silent oracles && npm run --silent oracles:http
