#include "server/route_parameters.h"

#include <map>
#include <nlohmann/json.hpp>

#include "api/openapi.h"
#include "api/query_parameters.h"
#include "base/text.h"

namespace muster::server {

namespace {

using DocumentJson = nlohmann::json;

/// The names of a route's parameters -> whether the parameter is a list, which may be repeated.
using DeclaredParameters = std::map<std::string, bool>;

/// "POST /v1/jobs" -> its parameters. A route without parameters is missing.
using ParametersByRoute = std::map<std::string, DeclaredParameters>;

std::string upper_case_of(std::string word) {
  for (char& letter : word) {
    if (letter >= 'a' && letter <= 'z') letter = static_cast<char>(letter - 'a' + 'A');
  }
  return word;
}

/// The parameter itself, where the document refers to one that several routes have.
const DocumentJson& parameter_behind(const DocumentJson& document, const DocumentJson& parameter) {
  const auto reference = parameter.find("$ref");
  if (reference == parameter.end()) return parameter;
  return document.at(DocumentJson::json_pointer(reference->get<std::string>().substr(1)));
}

const DocumentJson& parameter_behind(const DocumentJson&, DocumentJson&&) = delete;

/// The document without its largest parts, which declare no parameters.
DocumentJson declaring_document() {
  using Event = DocumentJson::parse_event_t;
  const auto keeps = [](int /*depth*/, Event event, const DocumentJson& parsed) {
    return event != Event::key || (parsed != "schemas" && parsed != "responses");
  };
  return DocumentJson::parse(api::openapi_document(), keeps);
}

ParametersByRoute read_declarations() {
  const DocumentJson document = declaring_document();
  ParametersByRoute routes;
  for (const auto& [path, methods] : document.at("paths").items()) {
    for (const auto& [method, operation] : methods.items()) {
      const auto parameters = operation.find("parameters");
      if (parameters == operation.end()) continue;
      for (const DocumentJson& each : *parameters) {
        const DocumentJson& parameter = parameter_behind(document, each);
        if (parameter.at("in") != "query") continue;
        const bool is_list = parameter.at("schema").value("type", "") == "array";
        routes[upper_case_of(method) + " " + path][parameter.at("name").get<std::string>()] =
            is_list;
      }
    }
  }
  return routes;
}

const DeclaredParameters& parameters_of(const std::string& route) {
  static const ParametersByRoute routes = read_declarations();
  static const DeclaredParameters none;
  const auto found = routes.find(route);
  return found == routes.end() ? none : found->second;
}

std::string fault_of_parameter(const DeclaredParameters& declared, const std::string& name,
                               size_t count) {
  const auto found = declared.find(name);
  if (found != declared.end()) {
    const bool is_right = count == 1 || found->second;
    return is_right ? "" : "is given " + std::to_string(count) + " times; give it once";
  }
  std::vector<std::string> known;
  for (const auto& [each, is_list] : declared) known.push_back(each);
  return api::unknown_parameter(name, known);
}

}  // namespace

std::vector<base::Fault> faults_of_parameters(const std::string& method, const std::string& path,
                                              const http::Query& query) {
  std::vector<base::Fault> faults;
  if (query.empty()) return faults;
  const DeclaredParameters& declared = parameters_of(method + " " + path);
  const std::string* last = nullptr;
  for (const auto& [name, value] : query) {
    if (last != nullptr && *last == name) continue;
    last = &name;
    std::string what = fault_of_parameter(declared, name, query.count(name));
    if (what.empty()) continue;
    faults.push_back({.field = base::shortened(base::as_utf8(name)), .what = std::move(what)});
  }
  return faults;
}

}  // namespace muster::server
