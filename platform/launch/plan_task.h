// The plan of one task of a gang; and the parts of a job's spec that count for the tasks of a role:
// their image, their program, their folder and their variables.
//
// Pure. plan_task(), names_for() and reach_files() are only for plan.cc and elastic.cc; other files,
// also of other folders, use the rest.
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

/// The entries of its /etc/hosts.
std::vector<std::pair<std::string, std::string>> names_for(const GangContext& gang, size_t index);

/// The files with which a task reaches the others.
std::vector<PlannedFile> reach_files(const GangContext& gang, size_t index);

// --- the parts of the spec for a role

/// The role's part of the spec; nullptr: the job's own fields apply.
const job::RoleSpec* role_spec(const job::JobSpec& spec, job::TaskRole role);

/// The image of a role: its own, or the job's.
const std::string& image_of(const job::JobSpec& spec, job::TaskRole role);

/// argv of a role. The command is the role's own, or the job's, or the stand-in's, in this order;
/// then come the job's arguments (unless the command is the role's own) and the role's arguments.
/// Empty: there is no command; for a worker of a kMpi job: it only answers ssh.
std::vector<std::string> program_of(const job::JobSpec& spec, job::TaskRole role,
                                    const job::ImageStandIns& images);

/// The same for a task that runs its image. `asked`: program_of() without stand-ins; it replaces
/// the image's entry point, or is passed to it. Without a command, the image's command is used.
std::vector<std::string> program_in_image(const job::JobSpec& spec, job::TaskRole role,
                                          const ImageFacts& image);

/// The job's folder, or that of the image's stand-in. If the job has its own files
/// (Volume::Kind::kTree), the job's folder.
std::string folder_of(const job::JobSpec& spec, job::TaskRole role,
                      const job::ImageStandIns& images);

/// The job's folder if the user chose it, otherwise the image's folder.
std::string folder_in_image(const job::JobSpec& spec, const ImageFacts& image);

/// The user's variables of a role, for a task that runs its image: without the variables inherited
/// from the submitting shell (job/spec.h).
std::map<std::string, std::string> set_variables_in_image(const job::JobSpec& spec,
                                                          job::TaskRole role);

/// The user's variables of a role: those of the image's stand-in, overridden by the job's,
/// overridden by the role's own.
std::map<std::string, std::string> set_variables(const job::JobSpec& spec, job::TaskRole role,
                                                 const job::ImageStandIns& images);

}  // namespace muster::launch
