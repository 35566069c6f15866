// The tables of a server's configuration: machines by name, and what stands in for images.
//
//   machine_types:
//     p3.2xlarge: {gpus: 1, gpu_model: V100, cpus: 8, memory: 61G}
//   images:
//     gcr.io/run-ai-demo/quickstart-distributed:
//       command: [/opt/quickstart/run.sh]     # or a text, which sh -c runs
//       folder: /opt/quickstart
//       environment: {DATA: /data}
//
// Pure; for server_keys.cc alone.
#pragma once

#include <map>
#include <string>

#include "cli/server_keys.h"
#include "job/machine_type.h"

namespace muster::cli {

void read_machine_types(const KeyValue& value, job::MachineTypes& target);
void read_images(const KeyValue& value, job::ImageStandIns& target);
/// Names of hosts, and a text for each.
void read_host_table(const KeyValue& value, std::map<std::string, std::string>& target);

}  // namespace muster::cli
