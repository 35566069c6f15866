// The command, arguments and variables of a container, as a program of Muster.
//
// Kubernetes replaces $(NAME) in them before the program starts. Values from the file are replaced
// here. A value that exists only in the running task is replaced by a shell that then becomes the
// program:
//
//   args: [--rank, $(RANK)]   ->   sh -c 'exec "$@"' with the words   ...  --rank "$RANK"
//
// Pure.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "dialects/kubernetes/pod.h"
#include "job/spec.h"

namespace muster::dialects::kubernetes {

/// The value of a variable; nothing: it is unknown, and the text stays as it is.
using Lookup = std::function<std::optional<Expression>(const std::string& name)>;

/// Replaces $(NAME); "$$" stands for "$". Nothing: the result would be longer than kMostExpanded.
/// Variables that contain others grow like powers of two.
std::optional<Expression> expand(std::string_view text, const Lookup& lookup);

inline constexpr size_t kMostExpanded = 256
                                        << 10;  ///< as the text of a whole job (job/validate.cc)

struct Program {
  std::vector<std::string> command;    ///< empty: the image's entry point
  std::vector<std::string> arguments;  ///< after the command, or of the entry point
  std::map<std::string, std::string> environment;
  std::vector<job::SecretUse> secrets;
};

/// `known_later`: variables that each task has when it runs ("RANK"), for $(RANK) in words.
Program program_of(const Pod& pod, const std::set<std::string>& known_later, Findings& findings);

}  // namespace muster::dialects::kubernetes
