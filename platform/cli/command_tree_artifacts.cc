// artifacts: what jobs leave in their artifacts folders.

#include "cli/command_parts.h"

namespace muster::cli {

Command artifacts() {
  Command list{.name = "list",
               .alias = "ls",
               .help = "the files in a job's artifacts folder, during the job and after it",
               .positionals = one_of(Offer::kJobs),
               .flags = Flags{{.name = "--checksums", .help = "with the SHA-256 of each"}} +
                        whose_job_flag() + output_flag(),
               .example = "muster artifacts list dist --checksums"};
  Command get{.name = "get",
              .help = "fetch them, or only some; what has come already does not come again",
              .positionals = {.name = "NAME [PATH...]",
                              .least = 1,
                              .most = kAnyNumber,
                              .choices = {},
                              .offer = Offer::kJobs},
              .flags = Flags{{.name = "--to",
                              .value = "FOLDER",
                              .help = "into this folder (default: NAME-artifacts)",
                              .offer = Offer::kFolders}} +
                       whose_job_flag(),
              .example = "muster artifacts get dist model.pt --to ."};
  return {.name = "artifacts",
          .help = "what jobs leave in their artifacts folders",
          .commands = {std::move(list), std::move(get)}};
}

}  // namespace muster::cli
