#include "engine/kubernetes/api_paths.h"

#include "base/text.h"
#include "http/message.h"

namespace muster::engine::kubernetes {

std::string target_of(const Resource& resource, std::string_view space, std::string_view name,
                      const http::Query& query, std::string_view subresource) {
  std::string target = resource.group.empty() ? "/api/" : "/apis/";
  if (!resource.group.empty()) target.append(resource.group).append("/");
  target.append(resource.version);
  if (resource.is_namespaced && !space.empty()) {
    target += "/namespaces/" + http::url_encoded(space);
  }
  target.append("/").append(resource.plural);
  if (!name.empty()) target += "/" + http::url_encoded(name);
  if (!subresource.empty()) target.append("/").append(subresource);
  char between = '?';
  for (const auto& [key, value] : query) {
    target += between;
    target += http::url_encoded(key) + "=" + http::url_encoded(value);
    between = '&';
  }
  return target;
}

std::string with_subresource(const Resource& resource, std::string_view subresource) {
  std::string text(resource.plural);
  if (!subresource.empty()) text.append("/").append(subresource);
  return text;
}

std::string described(const ObjectName& name) {
  std::string text(name.resource.plural);
  if (!name.name.empty()) text += " " + base::in_quotes(name.name);
  if (!name.space.empty()) text += " in namespace " + base::in_quotes(name.space);
  return text;
}

std::string described(const Selection& which) {
  std::string text(which.resource.plural);
  if (!which.labels.empty()) text += " with " + base::shortened(base::as_utf8(which.labels), 200);
  if (!which.fields.empty()) text += " with " + base::shortened(base::as_utf8(which.fields), 200);
  if (!which.space.empty()) text += " in namespace " + base::in_quotes(which.space);
  return text;
}

}  // namespace muster::engine::kubernetes
