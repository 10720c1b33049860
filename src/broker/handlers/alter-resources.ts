// What AlterConfigs and IncrementalAlterConfigs have in common: resources one by one, each with its own outcome, and none
// named twice. Not for: how a resource is changed (config-resources.ts).
import {
  type AlterOutcome,
  alterResource,
  type ConfigChanges,
  malformed,
  RESOURCE,
  type ResourceName,
} from '../config-resources.ts';
import type { RequestContext } from '../handler.ts';
import { learnTopics, type NamedTopic } from '../topic-lookup.ts';
import { repeated } from './repeated.ts';

interface AlterRequest<Resource extends ResourceName> {
  readonly resources: readonly Resource[];
  readonly validateOnly: boolean;
}

/** The topics among resources. */
export function topicsAmong(resources: readonly ResourceName[]): readonly NamedTopic[] {
  return resources
    .filter(({ resourceType }) => resourceType === RESOURCE.topic)
    .map(({ resourceName }) => ({ name: resourceName }));
}

const keyOf = ({ resourceType, resourceName }: ResourceName) => `${resourceType} ${resourceName}`;

/** `changesOf` throws FloeError for what the request says wrong of its resource. */
export async function alterResources<Resource extends ResourceName>(
  { resources, validateOnly }: AlterRequest<Resource>,
  context: RequestContext,
  changesOf: (resource: Resource) => ConfigChanges,
): Promise<AlterOutcome[]> {
  await learnTopics(context, () => topicsAmong(resources));
  const twice = repeated(resources.map(keyOf));
  const outcomes: AlterOutcome[] = [];
  for (const resource of resources) {
    const changes = () => {
      if (twice.has(keyOf(resource))) throw malformed('a resource is named twice');
      return changesOf(resource);
    };
    const outcome = await alterResource(context, resource, { changes, validateOnly });
    if (outcome.errorCode !== 0) context.countError(outcome.errorCode);
    outcomes.push(outcome);
  }
  return outcomes;
}

/** @throws FloeError when a config stands twice in a resource. */
export function checkNamedOnce(configs: readonly { readonly name: string }[]): void {
  const [twice] = repeated(configs.map(({ name }) => name));
  if (twice !== undefined) throw malformed(`config "${twice}" is named twice`);
}
