// Who may import whom (docs/ARCHITECTURE.md, "Folders"). Each rule carries its reason as its comment.
const tier = (names) => `^src/(${names.join('|')})/`;
const TIERS = [
  ['base'],
  ['protocol', 'formats', 'storage', 'metadata'],
  ['schema-registry', 'catalog', 'cluster'],
  ['broker', 'table-topic', 'queries'],
  ['cli'],
];
const upward = TIERS.flatMap((names, level) => {
  const above = TIERS.slice(level + 1).flat();
  return above.length === 0 ? [] : [{
    name: `tier-${level}-imports-upward`,
    comment: 'A lower tier must not know a higher one: move the shared part down or inject it.',
    severity: 'error', from: { path: tier(names) }, to: { path: tier(above) },
  }];
});
const strangers = [['schema-registry', 'catalog', 'cluster'], ['broker', 'table-topic', 'queries']].flatMap((names) =>
  names.map((name) => ({
    name: `${name}-stands-alone`,
    comment: 'Siblings of tiers 2 and 3 never import one another: the composition root (cli/serve.ts) joins them.',
    severity: 'error', from: { path: tier([name]) }, to: { path: tier(names.filter((n) => n !== name)) },
  })));
module.exports = {
  forbidden: [
    ...upward,
    ...strangers,
    { name: 'wire-and-formats-are-pure', severity: 'error',
      comment: 'protocol/ and formats/ turn bytes into values: they import base/ and themselves only.',
      from: { path: '^src/(protocol|formats)/' }, to: { path: '^src/(storage|metadata)/' } },
    { name: 'protocol-and-formats-apart', severity: 'error', comment: 'Kafka wire and table formats do not know each other.',
      from: { path: '^src/protocol/' }, to: { path: '^src/formats/' } },
    { name: 'formats-and-protocol-apart', severity: 'error', comment: 'Kafka wire and table formats do not know each other.',
      from: { path: '^src/formats/' }, to: { path: '^src/protocol/' } },
    { name: 'no-cycles', severity: 'error', comment: 'A cycle means that two files are one, or that a third is missing.',
      from: {}, to: { circular: true, dependencyTypesNot: ['type-only'] } },
    { name: 'sockets-in-one-file', severity: 'error',
      comment: 'broker/server.ts is the only file of src/ that opens Kafka sockets, tls-upgrade.ts secures them; cluster/hints/socket.ts those between nodes (cli is the composition root).',
      from: { path: '^src/', pathNot: ['^src/broker/(server|tls-upgrade)\\.ts$', '^src/cluster/hints/socket\\.ts$', '^src/base/ip-address\\.ts$', '^src/cli/', '^src/[^/]+/testing/', '\\.test\\.ts$'] }, to: { path: '^(node:)?(net|tls)$' } },
  ],
  options: {
    doNotFollow: { path: 'node_modules' },
    tsPreCompilationDeps: true,
    tsConfig: { fileName: 'tsconfig.json' },
    enhancedResolveOptions: { extensions: ['.ts', '.mjs', '.js'], exportsFields: ['exports'], conditionNames: ['import', 'node', 'default'] },
  },
};
