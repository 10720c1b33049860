# The main job on real input.
npm run --silent demo
