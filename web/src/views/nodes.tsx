// SPDX-License-Identifier: Apache-2.0
import { api, type Leader, type Standby } from '../api';
import { count, duration, plural } from '../format';
import { useLive, useResource } from '../hooks';
import { Table, type Column } from '../table';
import { Ago, Badge, Card, Empty, Figure, Loading, Page, Problem, Time } from '../ui';

const columns: Column<Leader>[] = [
  { title: 'Node', cell: (leader) => leader.node },
  { title: 'Lease', cell: (leader) => leader.lease },
  { title: 'State', cell: (leader) => <Badge text={leader.alive ? 'alive' : 'gone'} /> },
  { title: 'Epoch', number: true, cell: (leader) => count(leader.epoch) },
  { title: 'Pairs', number: true, cell: (leader) => count(leader.pairs) },
  { title: 'Leads since', minor: true, cell: (leader) => <Time at={leader.since} /> },
  { title: 'Heartbeat', minor: true, wide: true, cell: (leader) => <Ago at={leader.heartbeat} /> },
];

const standbyColumns: Column<Standby>[] = [
  { title: 'Node', cell: (standby) => standby.node },
  { title: 'State', cell: () => <Badge text="alive" /> },
  { title: 'Stands by since', minor: true, cell: (standby) => <Time at={standby.since} /> },
  { title: 'Heartbeat', minor: true, wide: true, cell: (standby) => <Ago at={standby.heartbeat} /> },
];

export function NodesView() {
  const { data, error, reload } = useResource((signal) => api.nodes(signal), ['nodes'], 2000);
  const { overview } = useLive();
  return (
    <Page title="Nodes & leaders" lead="Whoever holds a lease publishes its pairs; an epoch is never used twice.">
      {error && <Problem error={error} retry={reload} what="The nodes cannot be read" />}
      {!data && !error && <Loading />}
      {data && (
        <>
          <dl class="figures" aria-live="polite">
            <Figure label="This node" value={data.thisNode.name ?? 'unnamed'} note={data.thisNode.phase} tone="words" />
            <Figure label="Up for" value={duration(data.thisNode.uptimeSeconds)} />
            <Figure label="Leads" value={count(data.thisNode.ledPairs)} note="pairs" />
            {overview && (
              <Figure
                label="Database"
                value={overview.database.up ? 'up' : 'away'}
                tone={overview.database.up ? undefined : 'bad'}
                note={`${count(overview.database.connections.open)} of ${plural(overview.database.connections.limit, 'connection')} open, ${count(overview.database.connections.inUse)} in use`}
              />
            )}
          </dl>
          <Card title="Leases">
            {data.leases.length === 0 ? (
              <Empty title="Nobody leads">No node runs a relay. One with topics in its configuration takes the lease.</Empty>
            ) : (
              <Table label="Leases" columns={columns} rows={data.leases} id={(leader) => leader.lease} />
            )}
          </Card>
          {data.standbys.length > 0 && (
            <Card title="Standing by">
              <Table label="Standing by" columns={standbyColumns} rows={data.standbys} id={(standby) => standby.node} />
            </Card>
          )}
          <Card title="Sinks of this node">
            {overview && overview.sinks.length > 0 ? (
              <dl class="facts">
                {overview.sinks.map((sink) => (
                  <div key={sink.name}>
                    <dt>{sink.name}</dt>
                    <dd>
                      <Badge text={sink.healthy ? 'healthy' : 'unhealthy'} /> {sink.type}
                      {sink.lastError && <p class="muted">{sink.lastError}</p>}
                    </dd>
                  </div>
                ))}
              </dl>
            ) : (
              <p class="muted">None that report their health.</p>
            )}
          </Card>
        </>
      )}
    </Page>
  );
}
