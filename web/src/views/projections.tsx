// SPDX-License-Identifier: Apache-2.0
import { api, ApiError, type Projection } from '../api';
import { count, duration } from '../format';
import { useResource } from '../hooks';
import { Table, type Column } from '../table';
import { ActButton, announce, Badge, Empty, Loading, Page, Problem } from '../ui';

export function ProjectionsView() {
  const { data, error, reload } = useResource((signal) => api.projections(signal), ['projections'], 2000);
  const change = async (one: Projection, verb: 'pause' | 'resume') => {
    try {
      await api.projectionVerb(one.name, one.version, verb);
      announce(`${verb === 'pause' ? 'Paused' : 'Resumed'} ${one.name}`);
    } catch (why) {
      announce(why instanceof ApiError ? `${why.problem.title}: ${why.message}` : String(why), true);
    }
    reload();
  };
  const columns: Column<Projection>[] = [
    { title: 'Name', cell: (one) => one.name },
    { title: 'Version', number: true, cell: (one) => count(one.version) },
    { title: 'Status', cell: (one) => <Badge text={one.status} /> },
    { title: 'Live', minor: true, cell: (one) => (one.live ? <Badge text="live" /> : 'no') },
    { title: 'Lag', number: true, cell: (one) => count(one.lagEvents) },
    { title: 'Behind', number: true, minor: true, cell: (one) => (one.lagSeconds > 0 ? duration(one.lagSeconds) : '–') },
    { title: 'Position', number: true, minor: true, cell: (one) => count(one.position) },
    { title: 'Node', minor: true, cell: (one) => one.owner ?? '–' },
    { title: 'Last error', wide: true, minor: true, cell: (one) => one.lastError ?? '' },
    {
      title: 'Action',
      action: true,
      cell: (one) => {
        const verb = one.status === 'ACTIVE' ? 'pause' : 'resume';
        return (
          <ActButton needs={`/api/projections/{name}/${verb}`} class="small" label={`${verb} ${one.name} ${one.version}`} onClick={() => void change(one, verb)}>
            {verb === 'pause' ? 'Pause' : 'Resume'}
          </ActButton>
        );
      },
    },
  ];
  return (
    <Page title="Projections" lead="Read models that follow the queue's log.">
      {error && <Problem error={error} retry={reload} what="The projections cannot be read" />}
      {!data && !error && <Loading />}
      {data && data.length === 0 && (
        <Empty title="No projection yet">A program that runs a ProjectionRunner on this database registers its projections by itself.</Empty>
      )}
      {data && data.length > 0 && <Table label="Projections" columns={columns} rows={data} id={(one) => `${one.name}\n${one.version}`} />}
    </Page>
  );
}
