package com.openfaas.function;

import com.openfaas.model.AbstractHandler;
import com.openfaas.model.IRequest;
import com.openfaas.model.IResponse;
import java.util.Map;

/** Checks the quantity (FIX tag 32, LastQty) of every trade. */
public class Handler extends AbstractHandler {
    private static final long LARGEST_ORDER = 1_000_000;
    private static final double LARGEST_PARTICIPATION = 0.01; // of the security's average daily volume

    @Override
    public IResponse Handle(IRequest request) {
        Map<String, Object> portfolio = Json.read(request.getBody());
        Map<String, Object> securities = Finra.map(portfolio, "securities");
        return Finra.check(
            "volume", portfolio, trade -> fault(trade, Finra.map(securities, (String) trade.get("Symbol")))
        );
    }

    /** The first rule that the trade's quantity breaks, or null. */
    private static String fault(Map<String, Object> trade, Map<String, Object> security) {
        if (!(trade.get("LastQty") instanceof Long quantity)) {
            return "not-a-whole-number";
        }
        if (quantity <= 0) {
            return "not-positive";
        }
        if (quantity > LARGEST_ORDER) {
            return "too-large";
        }
        if (quantity > (Long) security.get("average_daily_volume") * LARGEST_PARTICIPATION) {
            return "moves-the-market";
        }
        long lot = (Long) security.get("round_lot");
        return quantity > lot && quantity % lot != 0 ? "mixed-lot" : null;
    }
}
