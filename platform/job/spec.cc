#include "job/spec.h"

namespace muster::job {

std::string_view to_string(Kind kind) {
  return kind == Kind::kMpi ? "mpi" : "single";
}

std::optional<Kind> kind_of(std::string_view name) {
  if (name == "single") return Kind::kSingle;
  if (name == "mpi") return Kind::kMpi;
  return std::nullopt;
}

std::string_view to_string(Sandbox sandbox) {
  return sandbox == Sandbox::kNone ? "none" : "bubblewrap";
}

std::optional<Sandbox> sandbox_of(std::string_view name) {
  if (name == "bubblewrap") return Sandbox::kBubblewrap;
  if (name == "none") return Sandbox::kNone;
  return std::nullopt;
}

}  // namespace muster::job
