# Independent readers and checkers, where they are at hand.
npm run --silent oracles && npm run --silent oracles:http && npm run --silent oracles:upserts &&
  npm run --silent oracles:maintained
