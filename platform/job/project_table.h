// The fields of a Project, as the store keeps it, and of a ProjectStatus, as the API lists it, one
// row each (record/table.h). The API's document of a project is its ProjectStatus.
#pragma once

#include "job/project.h"
#include "record/table.h"

namespace muster::job {

const record::Table& table_of(const Project*);
const record::Table& table_of(const ProjectStatus*);
const record::Table& table_of(const ProjectStatus::Amounts*);
const record::Table& table_of(const Quota*);
const record::Table& table_of(const Share*);

}  // namespace muster::job
