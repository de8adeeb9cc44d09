package com.openfaas.function;

import com.openfaas.model.AbstractHandler;
import com.openfaas.model.IRequest;
import com.openfaas.model.IResponse;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.regex.Pattern;

/** Checks the side (FIX tag 54) of every trade, and what that side demands of other fields. */
public class Handler extends AbstractHandler {
    private static final String BUY = "1", SELL = "2", SELL_SHORT = "5", SELL_SHORT_EXEMPT = "6", CROSS = "8";
    private static final Set<String> SIDES = Set.of(BUY, SELL, SELL_SHORT, SELL_SHORT_EXEMPT, CROSS);
    private static final Pattern LOCATE_ID = Pattern.compile("L-[A-Z]{4}-[0-9]{6}");
    private static final Pattern PARTY_ID = Pattern.compile("[A-Z]{4}");

    @Override
    public IResponse Handle(IRequest request) {
        return Finra.check("side", Json.read(request.getBody()), Handler::fault);
    }

    /**
     * The first rule that the trade's side breaks, or null.
     *
     * A short sale names where the shares are borrowed (Regulation SHO's locate); an exempt one and every other trade
     * do not. A cross has two different parties.
     */
    private static String fault(Map<String, Object> trade) {
        Object side = trade.get("Side");
        String locate = (String) trade.getOrDefault("LocateID", "");
        List<?> parties = (List<?>) trade.get("Parties");
        boolean isShort = SELL_SHORT.equals(side);
        if (!SIDES.contains(side)) {
            return "unknown-side";
        }
        if (isShort && !LOCATE_ID.matcher(locate).matches()) {
            return "no-locate";
        }
        if (!isShort && !locate.isEmpty()) {
            return "needless-locate";
        }
        if (!parties.stream().allMatch(party -> PARTY_ID.matcher((String) party).matches())) {
            return "unknown-party";
        }
        return CROSS.equals(side) && new HashSet<>(parties).size() != 2 ? "one-sided-cross" : null;
    }
}
