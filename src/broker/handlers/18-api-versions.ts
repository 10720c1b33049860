// ApiVersions (18), versions 0–4: what this broker serves, made from the router's table.
// A version unknown to us is answered in version 0 with UNSUPPORTED_VERSION on an open connection (KIP-511);
// connection.ts asks `unsupportedVersionReply` for that. v3 names the client's software, which must be a plain
// name. v3 also tells the features that are on (KIP-584): clients choose protocols by them.
import { ErrorCode } from '../../protocol/errors.ts';
import { type ApiVersionsReply, apiVersionsApi } from '../../protocol/messages/18-api-versions.ts';
import type { Handler } from '../handler.ts';
import type { Router } from '../router.ts';

/** KIP-511's pattern for names and versions of client software. */
const SOFTWARE = /^[a-zA-Z0-9](?:[a-zA-Z0-9.-]*[a-zA-Z0-9])?$/;

/** Features and their levels; fixed, as all brokers of a cluster run the same program. */
export const FEATURES: readonly { readonly name: string; readonly level: number }[] = [
  // Groups of the consumer protocol (KIP-848).
  { name: 'group.version', level: 1 },
  // An epoch per transaction, partitions that join by being written to (KIP-890).
  { name: 'transaction.version', level: 2 },
];

const supportedFeatures = FEATURES.map(({ name, level }) => ({
  name,
  minVersion: 1,
  maxVersion: level,
}));
const finalizedFeatures = FEATURES.map(({ name, level }) => ({
  name,
  minVersionLevel: level,
  maxVersionLevel: level,
}));

export const apiVersionsHandler: Handler<typeof apiVersionsApi> = {
  api: apiVersionsApi,
  versions: { min: 0, max: 4 },
  handle(request, { apiVersion, connection, services }) {
    if (apiVersion >= 3) {
      const { clientSoftwareName: name, clientSoftwareVersion: version } = request;
      if (!SOFTWARE.test(name) || !SOFTWARE.test(version)) {
        return { errorCode: ErrorCode.INVALID_REQUEST, apiKeys: [] };
      }
      connection.client = { name, version };
    }
    return {
      errorCode: 0,
      apiKeys: services.router.served,
      supportedFeatures,
      finalizedFeaturesEpoch: 0,
      finalizedFeatures,
    };
  },
};

/** The version 0 answer to a version that we don't know. */
export function unsupportedVersionReply(router: Router): ApiVersionsReply {
  return { errorCode: ErrorCode.UNSUPPORTED_VERSION, apiKeys: router.served };
}
