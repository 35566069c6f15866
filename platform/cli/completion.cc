#include "cli/completion.h"

namespace muster::cli {

namespace {

std::string below(const std::string& at, const Command& child) {
  return at.empty() ? child.name : at + " " + child.name;
}

void collect(const Command& command, const std::string& at, std::vector<Place>& places) {
  places.push_back({at, &command});
  for (const Command& child : command.commands) collect(child, below(at, child), places);
}

}  // namespace

std::vector<Place> places_in(const Command& root) {
  std::vector<Place> places;
  collect(root, "", places);
  return places;
}

std::vector<Step> steps_in(const Command& root) {
  std::vector<Step> steps;
  for (const auto& [at, command] : places_in(root)) {
    for (const Command& child : command->commands) {
      steps.push_back({at, child.name, below(at, child)});
      if (!child.alias.empty()) steps.push_back({at, child.alias, below(at, child)});
    }
  }
  return steps;
}

const char* names_command(Offer offer) {
  switch (offer) {
    case Offer::kJobs:
      return "list --output names";
    case Offer::kProjects:
      return "project list --output names";
    case Offer::kNodes:
      return "node list --output names";
    case Offer::kContexts:
      return "context list --output names";
    case Offer::kUsers:
      return "user list --output names";
    case Offer::kTokens:
      return "token list --output names";
    default:
      return nullptr;
  }
}

}  // namespace muster::cli
