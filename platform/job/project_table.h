// The fields of a Project as the store keeps them, one row each (record/table.h). The API's
// document of a project is made by hand (api/project_wire.h): null and absence differ there, and a
// pool that is null is taken away.
#pragma once

#include "job/project.h"
#include "record/table.h"

namespace muster::job {

const record::Table& table_of(const Project*);
const record::Table& table_of(const Quota*);
const record::Table& table_of(const Share*);

}  // namespace muster::job
