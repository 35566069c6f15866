// What stands in the way of a request, beside the error's sentence: programs whose commands are not
// Muster's own give their own advice by it.
//
// Values without locks: as thread-safe as any value.
#pragma once

#include <array>
#include <memory>
#include <string_view>
#include <utility>

#include "base/error.h"

namespace muster::job {

/// In an error. The API sends it as `cause`.
struct Obstacle : base::ErrorDetail {
  enum class Kind {
    kSeveralProjects,  ///< the name stands for objects of several projects
    kOtherProject,     ///< the name stands for an object of another project
    kNoSecret,         ///< the project lacks a secret that the job uses
    kUnendedJobs,      ///< the project has jobs that have not ended
    kEnded,            ///< the job has ended
  };
  explicit Obstacle(Kind which) : kind(which) {}
  Kind kind;
};

/// The texts of the API.
inline constexpr std::array<std::pair<Obstacle::Kind, std::string_view>, 5> kObstacleTexts{{
    {Obstacle::Kind::kSeveralProjects, "several_projects"},
    {Obstacle::Kind::kOtherProject, "other_project"},
    {Obstacle::Kind::kNoSecret, "no_secret"},
    {Obstacle::Kind::kUnendedJobs, "unended_jobs"},
    {Obstacle::Kind::kEnded, "ended"},
}};

/// In a refusal whose reason may pass by itself: the same request may be accepted later.
struct RefusedForNow : base::ErrorDetail {};

/// A detail for an error.
inline std::shared_ptr<const base::ErrorDetail> obstacle(Obstacle::Kind kind) {
  return std::make_shared<const Obstacle>(kind);
}

}  // namespace muster::job
