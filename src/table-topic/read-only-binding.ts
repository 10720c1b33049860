// A table as nodes bind it that don't coordinate it: as it is, changing nothing (read-only-catalog.ts).
import type { Topic } from '../metadata/topics.ts';
import { type BindingDeps, TableBinding } from './binding.ts';
import { readOnlyCatalog } from './read-only-catalog.ts';
import { resolveTopicConfigs, tableIdentifier } from './settings/index.ts';

/** To be opened by the caller. @throws FloeError `invalid` for a config that can't be resolved. */
export function readOnlyBinding(deps: BindingDeps, topic: Topic, tableUuid: string): TableBinding {
  const { topicId, name: topicName } = topic;
  const config = resolveTopicConfigs(topic.config);
  return new TableBinding(
    { ...deps, catalog: readOnlyCatalog(deps.catalog) },
    {
      owner: { topicId, topicName, shared: config['table.topic.shared'] },
      identifier: tableIdentifier(topicName, config),
      config,
      tableUuid,
    },
  );
}
