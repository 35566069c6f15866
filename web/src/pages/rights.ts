// Whether the user may change the jobs, arrays, sweeps and schedules of a project: this needs the role member.
import {useMemo, useRef} from 'preact/hooks';
import {get} from '../api/client';
import type {Projects} from '../api/types';
import {is_member, me, role_in} from '../app/session';
import {useData} from '../ui/parts';
import {project_rows} from './project_tree';

/**
 * A function that returns whether the user may change what is in a project. A role in a project above counts as well, so
 * the projects are loaded if the other roles of the user do not suffice for each of `projects`. Until the page has loaded
 * the user and these projects, the role cannot be determined, and the function returns true: a button that the server
 * refuses is better than a missing one.
 */
export function useMayChange(projects: string[]): (project: string) => boolean {
  const needs_parents = me.value !== null && projects.some((each) => !is_member(role_in(each)));
  // The projects stay loaded while another selection of `projects` does not need them.
  const were_needed = useRef(false);
  if (needs_parents) were_needed.current = true;
  const is_needed = were_needed.current;
  const loaded = useData(
    async (signal) => (is_needed ? (await get<Projects>('/v1/projects', {}, signal)).projects : null),
    [is_needed],
    {match: () => false, interval: 15_000, keep: true},
  );
  const parents = useMemo(
    () => new Map(project_rows(loaded.data ?? []).map((row) => [row.project.name, row.parents])),
    [loaded.data],
  );
  const is_unknown = me.value === null || (needs_parents && !loaded.data);
  return (project) => is_unknown || is_member(role_in(project, parents.get(project)));
}

/** Whether the user may submit jobs to some project. */
export function may_submit(): boolean {
  return me.value === null || [me.value.server_role, ...Object.values(me.value.projects)].some(is_member);
}
