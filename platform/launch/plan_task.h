// One task of a gang, planned.
//
// Pure. Of plan.cc and growth.cc alone.
#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "job/job.h"
#include "job/machine_type.h"
#include "launch/choose_launch.h"
#include "launch/gang.h"

namespace muster::launch {

/// The task at `index` of gang.tasks.
TaskPlan plan_task(const GangContext& gang, size_t index);

/// What its /etc/hosts is to know.
std::vector<std::pair<std::string, std::string>> names_for(const GangContext& gang, size_t index);

/// The files of a planned task that say whom it can reach and how.
std::vector<PlannedFile> reach_files(const GangContext& gang, size_t index);

// What the tasks of a role run and where: the job's command or the role's own, or what the image's
// stand-in runs, and the arguments behind it.
//
// Pure.

/// What the spec says of this role beside the job's own words; nullptr: the job speaks for it.
const job::RoleSpec* role_spec(const job::JobSpec& spec, job::Role role);

/// The image of a role: its own, or the job's.
const std::string& image_of(const job::JobSpec& spec, job::Role role);

/// argv, as it was asked for. The command is the role's own, or the job's, or the stand-in's, in
/// this order; behind it come the job's arguments (where the command is not the role's own) and
/// then the role's. Empty: nobody said what to run; of a worker of a kMpi job: it only answers ssh.
std::vector<std::string> program_of(const job::JobSpec& spec, job::Role role,
                                    const job::ImageStandIns& images);

/// The same of a task whose image is run. `asked`: what program_of() says without stand-ins; it
/// runs in the place of the image's entry point, or is what that is given. Where nothing was asked,
/// or arguments alone, the image has its say.
std::vector<std::string> program_in_image(const job::JobSpec& spec, job::Role role,
                                          const ImageFacts& image);

/// The job's folder, or that of the image's stand-in. Where the job brings files of its own
/// (Volume::Kind::kTree) the job's: it is about those.
std::string folder_of(const job::JobSpec& spec, job::Role role, const job::ImageStandIns& images);

/// The job's folder, where somebody chose it; else the one that the image says.
std::string folder_in_image(const job::JobSpec& spec, const ImageFacts& image);

/// What the user set of the variables of a role, for a task whose image is run: without what came
/// along from the shell that submitted it (job/inherited.h).
std::map<std::string, std::string> set_variables_in_image(const job::JobSpec& spec, job::Role role);

/// What the user set of the variables of a role: those of the image's stand-in, over them the
/// job's, over them the role's own.
std::map<std::string, std::string> set_variables(const job::JobSpec& spec, job::Role role,
                                                 const job::ImageStandIns& images);

}  // namespace muster::launch
