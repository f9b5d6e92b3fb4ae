// SPDX-License-Identifier: Apache-2.0
#include "storage/stream_search.hpp"

namespace postrider {

KeyGroup rarest_first(const KeyGroup& group, std::span<const StreamSample> samples, bool backwards) {
  std::size_t rarest = 0;
  for (std::size_t i = 1; i < group.size(); ++i) {
    const StreamSample& one = samples[i];
    const StreamSample& best = samples[rarest];
    const bool further = backwards ? one.reach < best.reach : one.reach > best.reach;
    if (one.count < best.count || (one.count == best.count && further)) rarest = i;
  }
  KeyGroup ordered = group;
  std::swap(ordered.front(), ordered[rarest]);
  return ordered;
}

std::string group_text(std::size_t hashes, bool backwards, std::string_view join) {
  std::string text = "select t0.position from {tags} as t0";
  for (std::size_t i = 1; i < hashes; ++i) {
    const std::string name = "t" + std::to_string(i);
    text.append(" ").append(join).append(" {tags} as ").append(name);
    text.append(" on ").append(name).append(".hash = ? and ").append(name).append(".position = t0.position");
  }
  text += " where t0.hash = ? and t0.position > ? and t0.position <= ? order by t0.position ";
  return text.append(backwards ? "desc" : "asc").append(" limit ?");
}

}  // namespace postrider
