//! Who waits for whom.

/// The members of one circle, each waiting for the next one and the last for the first; `None` if there is none.
/// `after[i]` are those that `i` waits for, all of them places in `after`.
pub(super) fn cycle(after: &[&[u32]]) -> Option<Vec<u32>> {
    let mut waiting: Vec<usize> = after.iter().map(|before| before.len()).collect();
    let mut then: Vec<Vec<usize>> = vec![Vec::new(); after.len()];
    for (i, before) in after.iter().enumerate() {
        before.iter().for_each(|&j| then[j as usize].push(i));
    }
    let mut ready: Vec<usize> = (0..after.len()).filter(|&i| waiting[i] == 0).collect();
    while let Some(i) = ready.pop() {
        for &next in &then[i] {
            waiting[next] -= 1;
            if waiting[next] == 0 {
                ready.push(next);
            }
        }
    }
    // Whoever is left waits for somebody who is left: going on from one to the next must come back.
    let mut at = waiting.iter().position(|&n| n > 0)?;
    let mut seen = vec![None; after.len()];
    let mut way: Vec<u32> = Vec::new();
    while seen[at].is_none() {
        seen[at] = Some(way.len());
        way.push(at as u32);
        at = after[at].iter().map(|&j| j as usize).find(|&j| waiting[j] > 0)?;
    }
    Some(way.split_off(seen[at]?))
}

#[cfg(test)]
mod tests {
    fn cycle(after: &[Vec<u32>]) -> Option<Vec<u32>> {
        super::cycle(&after.iter().map(Vec::as_slice).collect::<Vec<_>>())
    }

    #[test]
    fn circles_are_found_and_named() {
        assert_eq!(cycle(&[]), None);
        assert_eq!(cycle(&[vec![], vec![0], vec![0, 1]]), None);
        assert_eq!(cycle(&[vec![0]]), Some(vec![0]));
        assert_eq!(cycle(&[vec![1], vec![2], vec![1]]), Some(vec![1, 2]), "0 only waits for those in the circle");
        assert_eq!(cycle(&[vec![], vec![3, 0], vec![1], vec![2]]), Some(vec![1, 3, 2]));
    }

    #[test]
    fn a_long_chain_is_no_matter() {
        let mut chain: Vec<Vec<u32>> = (0..10_000u32).map(|i| vec![i + 1]).collect();
        chain.push(vec![]);
        assert_eq!(cycle(&chain), None);
        chain[10_000].push(0);
        assert_eq!(cycle(&chain).map(|way| way.len()), Some(10_001));
    }
}
