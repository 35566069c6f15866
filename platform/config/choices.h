// The settings that are one of a few words: an enum for each, and words_of(), which lists the words of its values
// in the order of the enum.
//
// Pure.
#pragma once

#include <array>
#include <cstddef>
#include <string_view>

#include "base/log.h"

namespace muster::config {

/// Who shares a home folder: the jobs of a user, or those of a project.
enum class TaskHomes { kOfUser, kOfProject };
/// A network for each job, or the machine's for all.
enum class TaskNetwork { kOwn, kShared };
/// Ids for each user of a team, or the account of the server for all; kAuto: ids if the server can give them.
enum class TaskAccounts { kAuto, kOwn, kShared };
/// The effect of a claim of CPUs.
enum class TaskCpu { kShares, kBind, kNone };
/// The devices that a task of a team can open.
enum class TaskDevices { kOwn, kAll };
/// Whether the nodes of Slurm see the jobs folder; kAuto: each node checks.
enum class NodeSharing { kAuto, kYes, kNo };
/// How pods and server connect; kAuto: pods call if there is an address for them.
enum class PodConnection { kAuto, kForward, kCall };
/// How pods get Muster's programs; kAuto: as a volume on nodes that can mount images.
enum class PodPrograms { kAuto, kVolume, kCopy };
/// What decides when and where the pods of a job run.
enum class PodQueue { kMuster, kDefault, kKueue };
/// How nodes are chosen for jobs that fit on several.
enum class Packing { kFragmentation, kPack, kSpread };

template <std::size_t Count>
using Words = std::array<std::string_view, Count>;

constexpr Words<2> words_of(TaskHomes) {
  return {"user", "project"};
}
constexpr Words<2> words_of(TaskNetwork) {
  return {"own", "shared"};
}
constexpr Words<3> words_of(TaskAccounts) {
  return {"auto", "own", "shared"};
}
constexpr Words<3> words_of(TaskCpu) {
  return {"shares", "bind", "none"};
}
constexpr Words<2> words_of(TaskDevices) {
  return {"own", "all"};
}
constexpr Words<3> words_of(NodeSharing) {
  return {"auto", "yes", "no"};
}
constexpr Words<3> words_of(PodConnection) {
  return {"auto", "forward", "call"};
}
constexpr Words<3> words_of(PodPrograms) {
  return {"auto", "volume", "copy"};
}
constexpr Words<3> words_of(PodQueue) {
  return {"muster", "default", "kueue"};
}
constexpr Words<3> words_of(Packing) {
  return {"fragmentation", "pack", "spread"};
}
/// Without kPlain, which is for programs that people watch.
constexpr Words<2> words_of(base::LogFormat) {
  return {"text", "json"};
}

}  // namespace muster::config
