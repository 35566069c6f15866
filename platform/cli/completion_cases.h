// The arms of `case` statements that bash and zsh read alike.
//
// Pure.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "cli/command_tree.h"

namespace muster::cli {

/// The statement of a shell that offers what may stand in a place.
using OfferStatement =
    std::function<std::string(Offer kind, const std::vector<std::string>& choices)>;

/// An arm for each step of the tree: the words "at:word" lead to a new "at".
std::string step_cases(const Command& root);

/// An arm for each flag that takes a value: it offers the values and returns.
std::string value_cases(const Command& root, const OfferStatement& offer);

}  // namespace muster::cli
