// Settings of listeners, TLS, SASL and ACLs, under Kafka's names where Kafka has them. Those of LISTENER_SETTINGS may be
// given for one listener as `listener.name.<name>.<setting>`, in lower case, as in Kafka.
// Stores are PEM files: Kafka's JKS is Java's own.
import { FloeError } from '../../base/error.ts';
import {
  bool,
  int,
  list,
  long,
  oneOf,
  type Setting,
  text,
  type Values,
} from '../../base/settings.ts';
import { listenerList } from '../setting-types.ts';
import { SECURITY_PROTOCOLS } from './listener-auth.ts';

export const SASL_MECHANISMS = ['PLAIN', 'SCRAM-SHA-256', 'SCRAM-SHA-512', 'OAUTHBEARER'] as const;

/** Never shown, never logged. */
function secret(doc: string): Setting<string> {
  return { ...text({ default: '', doc }), type: 'password' };
}

/** Kafka's authorizers mean the one authorizer that there is. */
const AUTHORIZERS = [
  '',
  'StandardAuthorizer',
  'org.apache.kafka.metadata.authorizer.StandardAuthorizer',
  'kafka.security.authorizer.AclAuthorizer',
] as const;

/** `NAME:PROTOCOL` pairs. */
function protocolMap(doc: string): Setting<readonly string[]> {
  const standard = SECURITY_PROTOCOLS.map((name) => `${name}:${name}`);
  const base = list({ default: standard as readonly string[], doc });
  return {
    ...base,
    valid: `NAME:PROTOCOL, … where PROTOCOL is one of ${SECURITY_PROTOCOLS.join(', ')}`,
    parse(value) {
      const pairs = base.parse(value);
      for (const pair of pairs) {
        const [, , protocol] = /^([A-Za-z0-9_]+):(\w+)$/.exec(pair) ?? [];
        if (!(SECURITY_PROTOCOLS as readonly (string | undefined)[]).includes(protocol)) {
          throw new FloeError('invalid', `"${pair}" is not NAME:PROTOCOL`);
        }
      }
      return pairs;
    },
  };
}

/** `User:alice;User:bob`, with semicolons as in Kafka: names may hold commas. */
const superUsers: Setting<readonly string[]> = {
  type: 'string',
  default: [],
  doc: 'Principals that may do everything, separated by semicolons, such as `User:admin;User:ops`.',
  valid: 'User:NAME; …',
  parse(value) {
    const users = value
      .split(';')
      .map((user) => user.trim())
      .filter((user) => user !== '');
    for (const user of users) {
      if (!/^User:./.test(user)) throw new FloeError('invalid', `"${user}" is not User:NAME`);
    }
    return users;
  },
  format: (value) => value.join(';'),
};

/** What may be given for one listener too. */
export const LISTENER_SETTINGS = {
  'ssl.keystore.location': text({
    default: '',
    doc: 'PEM file with the server’s certificate and those that lead to its authority; the private key too, unless `ssl.keystore.key.location` names its file.',
  }),
  'ssl.keystore.key.location': text({
    default: '',
    doc: 'PEM file with the private key, where it isn’t in the keystore.',
  }),
  'ssl.key.password': secret('Password of the private key, if it has one.'),
  'ssl.truststore.location': text({
    default: '',
    doc: 'PEM file with the authorities whose client certificates are accepted. Empty: those that Node trusts.',
  }),
  'ssl.keystore.type': oneOf(['PEM'], {
    default: 'PEM',
    doc: 'Only PEM: Java’s JKS is converted by `keytool` and `openssl` (docs/security.md).',
  }),
  'ssl.truststore.type': oneOf(['PEM'], { default: 'PEM', doc: 'Only PEM.' }),
  'ssl.client.auth': oneOf(['none', 'requested', 'required'], {
    default: 'none',
    doc: 'Whether clients of SSL listeners show a certificate. SASL_SSL listeners don’t ask, unless it is given for that listener, as in Kafka.',
  }),
  'ssl.enabled.protocols': list({
    default: ['TLSv1.2', 'TLSv1.3'],
    values: ['TLSv1.2', 'TLSv1.3'],
    doc: 'Versions of TLS that are spoken. Older ones are broken, so they can’t be switched on.',
  }),
  'ssl.cipher.suites': text({
    default: '',
    doc: 'Ciphers in OpenSSL’s notation, separated by colons. Empty: Node’s choice.',
  }),
  'ssl.principal.mapping.rules': text({
    default: 'DEFAULT',
    doc: 'How the subject of a client’s certificate becomes a user, as in Kafka: `RULE:pattern/replacement/[LU]`, …, the first that fits; DEFAULT is the whole subject.',
  }),
  'sasl.enabled.mechanisms': list({
    default: ['SCRAM-SHA-256', 'SCRAM-SHA-512'],
    values: SASL_MECHANISMS,
    doc: 'Mechanisms of SASL listeners. PLAIN sends passwords as they are: for SASL_SSL only.',
  }),
  'connections.max.reauth.ms': long({
    default: 0,
    min: 0,
    doc: 'Clients have to authenticate anew within this time, 0 never (KIP-368). A token’s own end counts besides.',
  }),
} as const;

/** Definitions by name; values have the type {@link SecuritySettings}. */
export const securitySettings = {
  listeners: listenerList(
    'Kafka addresses, NAME://host:port each; takes the place of `--kafka`. Empty: PLAINTEXT at that address.',
  ),
  'listener.security.protocol.map': protocolMap(
    'Which security protocol each listener speaks, by its name. What isn’t listed is known by its own name.',
  ),
  ...LISTENER_SETTINGS,
  'ssl.reload.interval.ms': long({
    default: 60_000,
    min: 0,
    doc: 'How often key and certificate files are looked at for a change, 0 never; SIGHUP does so at once. Connections go on with what they began with.',
  }),
  'sasl.users.location': text({
    default: '',
    doc: 'File of users that are there from the start, one `name=password` a line; for the first super user above all. Users made by `floe users` or kafka-configs.sh come before it.',
  }),
  'sasl.server.max.receive.size': int({
    default: 524_288,
    min: 1_024,
    doc: 'Largest request of a client that hasn’t authenticated yet, as in Kafka.',
  }),
  'connection.authentication.timeout.ms': long({
    default: 30_000,
    min: 100,
    doc: 'How long a client may take to authenticate, TLS included.',
  }),
  'connection.failed.authentication.delay.ms': int({
    default: 100,
    min: 0,
    max: 10_000,
    doc: 'How long the answer to a failed authentication is held back, so that guessing is slow; Kafka’s default.',
  }),
  'sasl.oauthbearer.jwks.endpoint.url': text({
    default: '',
    pattern: /^($|file:\/\/|https?:\/\/)/,
    wanted: 'file:///… or https://…',
    doc: 'Where the keys are that sign tokens: a JSON web key set, `https://…` or `file:///…`. Needed for OAUTHBEARER.',
  }),
  'sasl.oauthbearer.jwks.endpoint.refresh.ms': long({
    default: 3_600_000,
    min: 1_000,
    doc: 'After so long the keys are read again; a token with an unknown key does so sooner.',
  }),
  'sasl.oauthbearer.expected.issuer': text({
    default: '',
    doc: 'Who must have issued tokens (`iss`). Empty: anybody whose key is in the set.',
  }),
  'sasl.oauthbearer.expected.audience': list({
    default: [] as readonly string[],
    doc: 'For whom tokens must be (`aud`), one of these. Empty: anybody, so better set it.',
  }),
  'sasl.oauthbearer.sub.claim.name': text({
    default: 'sub',
    doc: 'The claim that holds the user’s name.',
  }),
  'sasl.oauthbearer.scope.claim.name': text({
    default: 'scope',
    doc: 'The claim that holds scopes; only its form is checked.',
  }),
  'sasl.oauthbearer.clock.skew.seconds': int({
    default: 30,
    min: 0,
    max: 600,
    doc: 'How far the clocks of issuer and broker may differ.',
  }),
  'authorizer.class.name': oneOf(AUTHORIZERS, {
    default: '',
    doc: 'Empty: everybody may do everything. Any of the others: ACLs decide, as in Kafka.',
  }),
  'super.users': superUsers,
  'allow.everyone.if.no.acl.found': bool({
    default: false,
    doc: 'Whether what no ACL is about is open to all.',
  }),
  'authorizer.max.acls': int({
    default: 100_000,
    min: 1,
    doc: 'Most ACLs: all of them are held in memory.',
  }),
  'http.security.protocol': oneOf(['auto', ...SECURITY_PROTOCOLS], {
    default: 'auto',
    doc: 'Security of the HTTP faces (registry, catalog, SQL, tables, metrics): TLS with SSL, users and passwords or tokens with SASL. `auto`: the strictest protocol of the Kafka listeners.',
  }),
} as const;

export type SecuritySettings = Values<typeof securitySettings>;
export type ListenerSettings = Values<typeof LISTENER_SETTINGS>;
