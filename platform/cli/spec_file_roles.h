// Of a job's YAML file: what its leader, its parameter servers and its evaluator run and need,
// what its tasks find, what it is called by.
//
//   image: registry.example.org/train:3
//   arguments: [--epochs, "3"]            # behind the image's own command, or behind `command`
//   leader: {resources: {cpus: 1}, environment: {ROLE: lead}}
//   leader_slots: 1                       # mpi: ranks that the launcher takes as well
//   allow_launcher_only: true             # mpi: no worker needs to run anything
//   worker_command: [./prepare]           # mpi: beside answering ssh
//   parameter_servers: 1                  # grpc
//   parameter_server: {command: python3 ps.py}
//   evaluators: 1                         # grpc
//   evaluator: {command: python3 evaluate.py}
//   volumes:
//     - /data/cifar:/data:ro
//     - {kind: storage, source: models, target: /models}
//   labels: {team: vision, nightly: ""}
//   annotations: {ticket: "17"}
//   held: true
//
// Pure; for spec_file.cc alone.
#pragma once

#include <filesystem>

#include "cli/yaml_fields.h"
#include "job/spec.h"

namespace muster::cli {

/// The keys above. Relative paths of volumes are relative to `folder`.
YamlFields::Keys role_keys(YamlFields& fields, job::JobSpec& spec,
                           const std::filesystem::path& folder);

/// A list of words; or a text, which sh -c runs.
void read_command(YamlFields& fields, const std::string& field, const YamlValue& value,
                  std::vector<std::string>& command);

/// A map of names and texts, added to what is there.
void read_texts(YamlFields& fields, const std::string& field, const YamlValue& value,
                std::map<std::string, std::string>& target);

}  // namespace muster::cli
