// Puts projects in the order of their tree, and computes the GPUs that each borrows. Pure.
import type {Project} from '../api/types';

export interface ProjectRow {
  project: Project;
  depth: number;
  parents: string[];
  /** The GPUs that the project uses beyond its quota in force. */
  borrowed: number;
  deserved: number | null;
  has_children: boolean;
}

export function project_rows(projects: Project[]): ProjectRow[] {
  const known = new Set(projects.map((project) => project.name));
  const children = new Map<string, Project[]>();
  for (const project of projects) {
    const beside = children.get(project.parent);
    if (beside) beside.push(project);
    else children.set(project.parent, [project]);
  }
  const rows: ProjectRow[] = [];
  const add = (project: Project, parents: string[]) => {
    if (parents.includes(project.name)) return;
    const deserved = project.status.deserved.gpus;
    rows.push({
      project,
      depth: parents.length,
      parents,
      deserved,
      has_children: children.has(project.name),
      borrowed: deserved === null ? 0 : Math.max(0, project.status.allocated.gpus - deserved),
    });
    for (const child of children.get(project.name) ?? []) add(child, [...parents, project.name]);
  };
  // Without the right to see a parent, its children are at the top level.
  for (const project of [...projects].sort((a, b) => a.sequence - b.sequence))
    if (!project.parent || !known.has(project.parent)) add(project, []);
  return rows;
}
